#!/usr/bin/env python3
"""Compares the profilers whose programs are in a build directory. bench/run calls it."""

import argparse
import os
import sys
import time

from harness import drain, machine, measures, report, targets
from harness.candidates import BY_NAME, Runner


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="where the programs were built")
    parser.add_argument("--output", help="where the page, the plots and the CSV go; default: none")
    parser.add_argument("--short", action="store_true", help="under a minute, without peers")
    parser.add_argument("--rounds", type=float, default=1.0,
                        help="as many times the usual number of rounds (default 1)")
    parser.add_argument("--only", metavar="TEXT", default="",
                        help="the measures whose names have this in them")
    parser.add_argument("--with-loss", action="store_true", help="also periods of 10 us")
    parser.add_argument("--seed", type=int, default=1, help="of the order and of the mixes")
    return parser.parse_args()


def rounds_of_work(runner):
    """As many as take a quarter of a second."""
    trial = 20_000_000
    figures = runner.run(BY_NAME["none"], ("work", measures.PERIOD, 1, trial))
    if "cpu_ns" not in figures:
        sys.exit(f"the program without a profiler does not run: {figures}")
    return int(trial * 250e6 / figures["cpu_ns"])


def choose(options, runner):
    chosen = [*measures.accuracy(), *measures.manners(), *measures.cost(rounds_of_work(runner))]
    if options.short:
        return [measures.shortened(one) for one in chosen if one.name in measures.SHORT]
    return [measures.Measure(one.section, one.name, one.arguments, one.figures,
                             max(1, round(one.rounds * options.rounds)), one.candidates,
                             one.seeded) for one in chosen]


def loss_measures(options):
    """Ever shorter periods, for as long as they end in time."""
    if options.short:
        return
    cpus = len(os.sched_getaffinity(0))
    for microseconds in (100, 50):
        yield measures.loss(microseconds, cpus, 10)
    if options.with_loss:
        yield measures.loss(10, 1, 1)
        yield measures.loss(10, cpus, 10)


def take(options, runner, results, say):
    for measure in choose(options, runner):
        if options.only not in measure.name:
            continue
        measures.run(runner, measure, results, options.seed, say)
    for measure in loss_measures(options):
        if options.only not in measure.name:
            continue
        measures.run(runner, measure, results, options.seed, say)
        if results.problem(measure.name, "libprofil"):
            break


def main():
    options = arguments()
    runner = Runner(options.build)
    results = measures.Results()
    started = time.monotonic()

    def say(text):
        print(f"[{time.monotonic() - started:5.0f} s] {text}", file=sys.stderr, flush=True)

    drain_figures = drain.measure(runner, 2000, say)
    try:
        take(options, runner, results, say)
    except KeyboardInterrupt:
        say("interrupted; these are the figures so far")
    cpus = len(os.sched_getaffinity(0))
    aims = targets.all_targets(results, drain_figures, cpus)
    for title, head, body in report.tables(results, drain_figures, aims, cpus):
        if body:
            print(f"\n== {title}\n\n{report.terminal(head, body)}", end="")
    for line in report.problems(results):
        print(f"no figure: {line}")
    # The text is made in any case, so that the short form finds what is wrong with it.
    drawn = draw(options.output, results, drain_figures) if options.output else []
    page = report.page(machine.describe(), results, drain_figures, aims, cpus, drawn)
    if options.output:
        with open(os.path.join(options.output, "benchmarks.md"), "w", encoding="utf-8") as file:
            file.write(page)
    missed = [aim for aim in aims
              if aim.exact and not aim.met and not (options.only and aim.figure is None)]
    for aim in missed:
        print(f"FAILED: {aim.text}: {report.number(aim.figure)}, not {aim.limit}")
    sys.exit(1 if missed else 0)


def draw(directory, results, drain_figures):
    """The CSV file and the plots; the plots' names and titles."""
    from harness import plots  # needs more than the short form has

    images = os.path.join(directory, "benchmarks")
    os.makedirs(images, exist_ok=True)
    report.write_csv(results, drain_figures, os.path.join(images, "figures.csv"))
    return plots.all_plots(results, images)


if __name__ == "__main__":
    main()
