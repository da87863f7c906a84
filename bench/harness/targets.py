"""What is aimed at, and how far the figures are from it."""

from dataclasses import dataclass

import numpy as np

from .figures import line
from .measures import (CREATE_HERE, CREATE_THERE, RATES, STARTSTOP, THREADS, startstop_row,
                       ticks_row)

DRAWS = 400


@dataclass
class Target:
    text: str
    figure: float  # None: not measured
    limit: str
    met: bool
    exact: bool = False  # no noise can explain a miss
    interval: tuple = None  # that the figure lies in nine times in ten; None: not known
    bound: float = None  # that the interval is held against

    def verdict(self):
        if self.figure is None:
            return "not measured"
        if self.interval and self.interval[0] <= self.bound <= self.interval[1]:
            return "not resolved"
        return "met" if self.met else "missed"


def at_most(text, figure, limit, unit="", exact=False):
    return Target(text, figure, f"<= {limit:g} {unit}".strip(),
                  figure is not None and figure <= limit, exact)


def at_least(text, figure, limit, exact=False):
    return Target(text, figure, f">= {limit:g}", figure is not None and figure >= limit, exact)


def within(text, figure, low, high, exact=False):
    return Target(text, figure, f"{low:g} .. {high:g}",
                  figure is not None and low <= figure <= high, exact)


def ratio_at_most(text, costs, name, reference, limit):
    """A ratio of two small differences. `costs` computes the cost per sample of a candidate from
    rounds that are drawn anew each time; where the target lies within what the draws make of it,
    the rounds were too few, or too noisy, to tell."""
    generator = np.random.default_rng(1)
    draws = []
    for _ in range(DRAWS):
        own, other = costs(name, generator), costs(reference, generator)
        if own is not None and other is not None:
            draws.append(own / other if other > 0 else np.inf)
    own, other = costs(name, None), costs(reference, None)
    target = at_most(text, ratio(own, other), limit)
    if draws:
        target.interval = tuple(np.quantile(draws, (0.05, 0.95), method="nearest"))
        target.bound = limit
    return target


def drawn(rounds, generator):
    """As many rounds as there are, drawn with replacement; all of them without a generator."""
    if generator is None or not rounds:
        return rounds
    return [rounds[index] for index in generator.integers(len(rounds), size=len(rounds))]


def median_of(rounds, figure):
    values = [figures[figure] for figures in rounds if figure in figures]
    return float(np.median(values)) if values else None


def gap_cost(results, rate, name, generator=None):
    """ns per sample: taken from the program beyond what is taken without a profiler, and used by
    the profiler's own threads. None if nothing was sampled, or not at this rate."""
    measure = f"gaps at {rate} Hz"
    base = median_of(drawn(results.rounds.get((measure, "none"), []), generator),
                     "gap_ns_per_cpu_second")
    costs = []
    for figures in drawn(results.rounds.get((measure, name), []), generator):
        if figures.get("ticks", 0) == 0 or base is None:
            continue
        seconds = figures["cpu_ns"] / 1e9
        if figures["ticks"] < 0.8 * rate * seconds:
            return None
        costs.append(((figures["gap_ns_per_cpu_second"] - base) * seconds / figures["ticks"],
                      figures["own_ns_per_cpu_second"] * seconds / figures["ticks"]))
    if not costs:
        return None
    costs.sort(key=sum)
    return costs[len(costs) // 2]


def work_cost(results, rate, name, generator=None):
    """ns per sample, of the whole process, by the CPU time of a fixed amount of work."""
    measure = f"fixed work at {rate} Hz"
    rounds = drawn(results.rounds.get((measure, name), []), generator)
    base = median_of(drawn(results.rounds.get((measure, "none"), []), generator), "cpu_ns")
    used = median_of(rounds, "cpu_ns")
    samples = median_of(rounds, "ticks")
    return (used - base) / samples if base and used and samples else None


def ratio(left, right):
    return left / right if left is not None and right else None


def accuracy(results):
    for name in ("libprofil", "libprofil/10"):
        for threads in THREADS:
            row = ticks_row(threads)
            figure = results.median(row, name, "ratio")
            # Threads of 1 s use some 10 us more, so that 99 ticks of 100 make 0.98999.
            yield within(f"ticks per 10 ms, {row}, {name}",
                         None if figure is None else round(figure, 3), 0.99, 1.01)
    for row in ("error of a known mix, 1 thread", "error of a known mix, 4 threads"):
        for name in ("libprofil", "libprofil/10"):
            yield at_most(f"{row}, {name}", results.mean(row, name, "error"), 1.1)


def cost(results):
    for rate in RATES:
        if rate == 100:
            continue

        def by_gaps(name, generator, rate=rate):
            pair = gap_cost(results, rate, name, generator)
            return sum(pair) if pair else None

        def by_work(name, generator, rate=rate):
            return work_cost(results, rate, name, generator)

        for how, costs in (("by gaps", by_gaps), ("by fixed work", by_work)):
            for reference, limit in (("signal", 0.7), ("bare", 1.15)):
                yield ratio_at_most(f"cost per sample at {rate} Hz, {how}, over {reference}",
                                    costs, "libprofil", reference, limit)


def drain(figures):
    if not figures:
        return
    yield at_most("drain, ns per record", figures.get("ns_per_record"), 40)
    yield at_most("drain, atomic read-modify-writes in its functions", len(figures["atomic"]), 0,
                  exact=True)
    yield at_most("drain, ends by a system call", int(figures["system_calls"]), 0, exact=True)


def startstop_fit(results, name, figure, cpus):
    """Fixed part in us, and us for each thread and CPU."""
    points = [(threads * cpus, results.median(startstop_row(threads),
                                              name, figure)) for threads in STARTSTOP]
    points = [(x, y) for x, y in points if y]
    return line(*zip(*points)) if len(points) > 2 else (None, None)


def start_and_stop(results, cpus):
    for call in ("start", "stop"):
        fixed, each = startstop_fit(results, "libprofil", f"{call}_us", cpus)
        yield at_most(f"{call}, us for each thread and CPU", each, 20, "us")
        yield at_most(f"{call}, fixed part", fixed, 500, "us")
    for row in (CREATE_HERE, CREATE_THERE):
        yield at_most(f"{row}, over the time without",
                      results.median(row, "libprofil", "create_ratio"), 1.3)


def manners(results):
    name = "libprofil"
    values = results.values("sleeps beside busy threads", name, "eintr")
    yield at_most("EINTR", max(values, default=None), 0, exact=True)
    for word in ("exec", "fork", "closefrom"):
        values = results.values(word, name, "alive")
        ran = (word, name) in results.rounds
        yield at_least(f"survives {word}", min(values, default=0.0) if ran else None, 1,
                       exact=True)
    values = results.values("closefrom", name, "lowest_descriptor")
    yield at_most("lowest free descriptor while on", max(values, default=None), 3, exact=True)
    values = results.values("closefrom", name, "descriptors_left")
    yield at_least("descriptors of the program left after stop", min(values, default=None), 2,
                   exact=True)
    yield at_most("wake-ups, idle, in all", results.median("wake-ups, idle", name, "wakeups"), 0)
    yield at_most("wake-ups, busy",
                  results.median("wake-ups, busy", name, "wakeups_per_second"), 110, "1/s")
    rings = results.median("memory", name, "rings_kib")
    count = results.median("memory", name, "rings")
    # The control page comes with each ring, and is not of its data.
    yield at_most("ring, KiB for each CPU, with its control page", ratio(rings, count), 68,
                  "KiB", exact=True)
    yield at_most("sampler's stack", results.median("memory", name, "smallest_stack_kib"), 64,
                  "KiB")


def sanity(results):
    """Bounds so wide that no machine's noise is an excuse."""
    lost = [value for measure in results.measures if measure.section == "accuracy"
            for name in ("libprofil", "libprofil/10")
            for value in results.values(measure.name, name, "lost")]
    if lost:
        yield at_most("samples lost at 10 ms", max(lost), 0, exact=True)
    for threads in THREADS:
        row = ticks_row(threads)
        figure = results.median(row, "libprofil", "ratio")
        if figure is not None:
            yield within(f"ticks per 10 ms, {row}, wide bounds", figure, 0.85, 1.1, exact=True)
    figure = results.median("wake-ups, idle", "libprofil", "wakeups")
    if figure is not None:
        yield at_most("wake-ups, idle, in all, wide bounds", figure, 2, exact=True)


def loss(results):
    for measure in results.measures:
        if measure.section == "loss":
            yield at_most(f"lost samples, {measure.name}",
                          results.median(measure.name, "libprofil", "lost"), 0)


def all_targets(results, drain_figures, cpus):
    return [*accuracy(results), *cost(results), *drain(drain_figures),
            *start_and_stop(results, cpus), *manners(results), *loss(results), *sanity(results)]
