"""Medians, and what chance alone makes of a profile."""

import numpy as np


def quartiles(values):
    """First quartile, median, third quartile."""
    return tuple(float(value) for value in np.percentile(values, (25, 50, 75)))


def distance(truth, ticks):
    """Total variation distance of the shares of ticks from the true shares, or None."""
    truth, ticks = np.array(truth, dtype=float), np.array(ticks, dtype=float)
    if ticks.sum() == 0:
        return None
    return float(np.abs(truth / truth.sum() - ticks / ticks.sum()).sum() / 2)


def chance_distance(truth, period, random, trials=2000):
    """The mean of that distance for a sampler that is perfect: one sample in each period of CPU
    time, each in a function by its share."""
    truth = np.array(truth, dtype=float)
    shares = truth / truth.sum()
    samples = max(1, int(round(truth.sum() / period)))
    ticks = random.multinomial(samples, shares, size=trials)
    return float((np.abs(ticks / samples - shares).sum(axis=1) / 2).mean())


def line(x, y):
    """Intercept and slope of a line whose relative errors are least: the fit of costs that span
    three powers of ten must not be that of the greatest alone."""
    x, y = np.array(x, dtype=float), np.array(y, dtype=float)
    weights = 1 / y
    matrix = np.stack([weights, weights * x], axis=1)
    (intercept, slope), *_ = np.linalg.lstsq(matrix, weights * y, rcond=None)
    return float(intercept), float(slope)
