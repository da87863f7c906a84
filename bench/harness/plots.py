"""The plots, as SVG and PNG."""

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from .candidates import CANDIDATES
from .measures import BIRTHS, RATES, STARTSTOP, THREADS, births_row, startstop_row, ticks_row
from .targets import gap_cost

# The same file for the same figures.
plt.rcParams.update({"svg.hashsalt": "libprofil", "font.size": 9, "axes.grid": True,
                     "grid.alpha": 0.3, "figure.figsize": (7, 4)})


def save(figure, directory, name):
    figure.tight_layout()
    figure.savefig(os.path.join(directory, name + ".svg"), metadata={"Date": None})
    figure.savefig(os.path.join(directory, name + ".png"), dpi=120, metadata={"Software": None})
    plt.close(figure)


def curves(axes, results, x_and_measure, figure):
    """A line with its quartiles for each candidate; whether there is any."""
    drawn = False
    for candidate in CANDIDATES:
        points = [(x, results.quartiles(measure, candidate.name, figure))
                  for x, measure in x_and_measure]
        points = [(x, triple) for x, triple in points if triple]
        if not points or candidate.name == "none":
            continue
        x = [point[0] for point in points]
        low, middle, high = zip(*(point[1] for point in points))
        axes.errorbar(x, middle, yerr=[[m - l for l, m in zip(low, middle)],
                                       [h - m for m, h in zip(middle, high)]],
                      marker="o", markersize=3, capsize=2, linewidth=1, label=candidate.name)
        drawn = True
    if drawn:
        axes.legend(fontsize=7)
    return drawn


def ticks(results, directory):
    figure, axes = plt.subplots()
    drawn = curves(axes, results, [(n, ticks_row(n)) for n in THREADS],
                   "ratio")
    axes.set(xscale="log", xlabel="threads", ylabel="ticks per 10 ms of CPU time",
             title="Ticks by number of threads")
    axes.set_xticks(list(THREADS), [str(n) for n in THREADS])
    axes.axhspan(0.99, 1.01, color="green", alpha=0.15)
    save(figure, directory, "ticks")
    return drawn


def births(results, directory):
    figure, axes = plt.subplots()
    drawn = curves(axes, results,
                   [(ms, births_row(ms)) for ms in BIRTHS], "ratio")
    axes.set(xscale="log", xlabel="CPU time of a thread, ms",
             ylabel="ticks per 10 ms of CPU time", title="Threads one after the other")
    axes.set_xticks(list(BIRTHS), [str(ms) for ms in BIRTHS])
    save(figure, directory, "short-threads")
    return drawn


def mix(results, directory):
    row = "error of a known mix, 1 thread"
    names = [candidate.name for candidate in CANDIDATES
             if results.values(row, candidate.name, "error")]
    figure, axes = plt.subplots()
    if names:
        axes.boxplot([results.values(row, name, "error") for name in names], labels=names,
                     showmeans=True)
    axes.axhline(1, color="green", linewidth=1)
    axes.set(ylabel="error / that of chance", title="Error of a known mix, 100 ticks")
    save(figure, directory, "mix")
    return bool(names)


def cost(results, directory):
    figure, axes = plt.subplots(1, len(RATES), figsize=(9, 4))
    drawn = False
    for axis, rate in zip(axes, RATES):
        costs = {candidate.name: gap_cost(results, rate, candidate.name)
                 for candidate in CANDIDATES}
        costs = {name: pair for name, pair in costs.items() if pair}
        names = list(costs)
        program = [max(0, costs[name][0]) / 1e3 for name in names]
        own = [costs[name][1] / 1e3 for name in names]
        axis.bar(names, program, label="taken from the program")
        axis.bar(names, own, bottom=program, label="own threads")
        highest = max(map(sum, zip(program, own)), default=0)
        axis.set(title=f"{rate} Hz", ylabel="us per sample", ylim=(0, 1.15 * highest or 1))
        axis.tick_params(axis="x", rotation=45)
        drawn = drawn or bool(names)
    axes[0].legend(fontsize=7)
    save(figure, directory, "cost")
    return drawn


def startstop(results, directory):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    measures = [(n, startstop_row(n)) for n in STARTSTOP]
    drawn = [curves(axis, results, measures, f"{call}_us")
             for axis, call in zip(axes, ("start", "stop"))]
    for axis, call in zip(axes, ("Start", "Stop")):
        axis.set(xscale="log", yscale="log", xlabel="threads", ylabel="us", title=call)
    save(figure, directory, "start-stop")
    return any(drawn)


def all_plots(results, directory):
    """(name, title) of those that show something."""
    os.makedirs(directory, exist_ok=True)
    plots = (("ticks", "Ticks by number of threads", ticks),
             ("short-threads", "Short threads", births), ("mix", "Error of a known mix", mix),
             ("cost", "Cost per sample", cost), ("start-stop", "Start and stop", startstop))
    return [(name, title) for name, title, draw in plots if draw(results, directory)]
