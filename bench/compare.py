#!/usr/bin/python3
"""Compares libprofil with other profilers: compare.py BUILD-DIRECTORY OUTPUT-DIRECTORY [--short] [--loss].

Each measure is taken in a process of its own, bench/subject-PROFILER. The candidates take turns, in an
order that is shuffled anew each round, so that whatever else the machine does meets all of them. Shown
are medians and quartiles, and ratios to a reference that was measured in the same rounds. What costs
time is measured in CPU time.
"""

import argparse
import csv
import os
import pathlib
import random
import subprocess
import sys

import numpy

import figures
import machine

TICK = 10_000_000  # ns

# Name: program, environment, and whether other periods than 10 ms can be asked for.
CANDIDATES = {
    "none": ("none", {}, True),
    "glibc": ("glibc", {}, False),
    "gperftools": ("gperftools", {"CPUPROFILE_FREQUENCY": "100"}, False),
    "PAPI": ("papi", {}, True),
    "signal": ("signal", {}, True),
    "libprofil": ("libprofil", {"PROFIL_SUBTICKS": ""}, True),
    "libprofil, 10 sub-ticks": ("libprofil", {"PROFIL_SUBTICKS": "10"}, True),
    "libprofil, 1 sub-tick": ("libprofil", {"PROFIL_SUBTICKS": "1"}, True),
    "bare": ("bare", {}, True),
    "bare, woken": ("bare", {"BENCH_BARE_WAKEUPS": "1"}, True),
}
PEERS = ["glibc", "gperftools", "PAPI", "libprofil", "libprofil, 10 sub-ticks", "bare"]


class Bench:
    """Runs measures and keeps every figure."""

    def __init__(self, build, short):
        self.build = build
        self.short = short
        self.random = random.Random(1)
        self.rows = []  # (measure, candidate, round, key, value)
        self.remarks = {}  # (measure, candidate): why there is no figure

    def run(self, candidate, measure, arguments, period=TICK, timeout=60):
        """The figures of one process, by name; empty where the profiler cannot do it."""
        program, environment, any_period = CANDIDATES[candidate]
        subject = self.build / "bench" / f"subject-{program}"
        if not subject.exists():
            return {}, "not built"
        if period != TICK and not any_period:
            return {}, "10 ms only"
        command = [subject, measure, str(period), *map(str, arguments)]
        try:
            done = subprocess.run(command, env={**os.environ, **environment}, timeout=timeout,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
        except subprocess.TimeoutExpired:
            return {}, "does not end"
        found, remark = {}, ""
        for line in done.stdout.splitlines():
            key, _, value = line.partition("=")
            if key in ("unsupported", "failed"):
                remark = value
            elif value:
                found[key] = float(value)
        if done.returncode < 0:
            remark = f"killed by signal {-done.returncode}"
        return found, remark

    def compare(self, name, candidates, measure, arguments, rounds, period=TICK, each=None):
        """Runs the candidates in turn; their figures go into rows under the name. `each` makes
        arguments of the number of the round."""
        for number in range(rounds):
            for candidate in self.random.sample(candidates, len(candidates)):
                found, remark = self.run(candidate, measure,
                                         each(number) if each else arguments, period)
                if remark:
                    self.remarks[name, candidate] = remark
                for key, value in found.items():
                    self.rows.append((name, candidate, number, key, value))
        print(".", end="", flush=True)

    def values(self, name, candidate, key):
        """The figures of all rounds, in order."""
        return numpy.array([value for row_name, row_candidate, _, row_key, value in self.rows
                            if (row_name, row_candidate, row_key) == (name, candidate, key)])

    def median(self, name, candidate, key):
        found = self.values(name, candidate, key)
        return float(numpy.median(found)) if len(found) else float("nan")

    # --- measures ---

    def accuracy(self):
        for threads, seconds in ((1, 3), (2, 3), (4, 2), (8, 1.5), (32, 0.5)):
            if self.short:
                if threads not in (1, 4):
                    continue
                seconds = 0.5
            self.compare(f"ticks, {threads} threads", PEERS, "ticks", [threads, seconds],
                         1 if self.short else 3)
        if self.short:
            return
        self.compare("skew, 2 threads", PEERS, "skew", [2, 1], 9)
        self.compare("mix", PEERS, "mix", [], 60, each=lambda number: [2, 0.5, number + 1])
        for milliseconds, count in ((1, 300), (2, 200), (4, 150), (9, 80), (15, 60), (100, 10)):
            self.compare(f"births, {milliseconds} ms", PEERS, "births", [milliseconds, count], 5)
        self.compare("system", PEERS, "system", [1], 5)

    def manners(self):
        rounds = 1 if self.short else 3
        everyone = PEERS + ["signal"]
        self.compare("eintr", everyone, "eintr", [0.5 if self.short else 1], rounds)
        for word in ("exec", "fork", "closefrom"):
            self.compare(f"survival, {word}", everyone, "survival", [word], rounds)
        seconds = 1 if self.short else 2
        own = ["libprofil", "libprofil, 10 sub-ticks"]
        self.compare("wakeups, idle", own, "wakeups", ["idle", seconds], rounds)
        self.compare("wakeups, busy", own, "wakeups", ["busy", seconds], rounds)
        self.compare("memory", ["libprofil", "PAPI", "gperftools"], "memory", [], rounds)

    def cost(self):
        """The program's time, by gaps in a loop that reads the clock; the sampler's by its own."""
        candidates = ["none", "signal", "PAPI", "libprofil, 1 sub-tick", "bare", "bare, woken"]
        for period in ([1_000_000] if self.short else [10_000_000, 1_000_000, 100_000]):
            self.compare(f"cost, {1_000_000_000 // period} Hz", candidates, "gaps",
                         [0.5 if self.short else 1], 3 if self.short else 15, period)
        if self.short:
            return
        for threads in (1, 10, 100, 1000, 5000):
            self.compare(f"startstop, {threads} threads", ["glibc", "libprofil", "bare"],
                         "startstop", [threads], 9)
        self.compare("create", ["none", "libprofil", "libprofil, 10 sub-ticks", "bare"], "create",
                     [2000], 15)

    def loss(self):
        self.compare("loss, 10 us, 1 thread", ["libprofil, 1 sub-tick"], "loss", [1, 1], 1, 10_000)
        self.compare("loss, 10 us, all CPUs", ["libprofil, 1 sub-tick"], "loss",
                     [os.cpu_count(), 10], 1, 10_000)

    def drain(self):
        """ns and instructions for a record, and whether draining makes a system call."""
        program = self.build / "bench" / "drain"
        for number in range(1 if self.short else 5):
            done = subprocess.run([program, "time", "2000"], capture_output=True, text=True,
                                  check=True)
            for line in done.stdout.splitlines():
                key, _, value = line.partition("=")
                self.rows.append(("drain", "libprofil", number, key, float(value)))
        calls = subprocess.run([program, "system-calls"], check=False)
        self.rows.append(("drain", "libprofil", 0, "system_calls", float(calls.returncode != 0)))
        if self.short:
            return
        for rounds in (100, 1100):
            done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                                   "--toggle-collect=drain_ring", program, "count", str(rounds)],
                                  capture_output=True, text=True, check=False)
            for line in done.stderr.splitlines():
                if "Collected" in line:
                    self.rows.append(("drain", "libprofil", 0, f"instructions_{rounds}",
                                      float(line.split(":")[1])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="a minute, and what noise cannot explain")
    parser.add_argument("--loss", action="store_true", help="also a period of 10 us, which can bring "
                        "a small virtual machine to a standstill")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), options.short)
    for part in (bench.drain, bench.accuracy, bench.manners, bench.cost):
        part()
    if options.loss:
        bench.loss()
    print()
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "benchmarks.csv", "w", newline="", encoding="ascii") as file:
        writer = csv.writer(file)
        writer.writerow(("measure", "candidate", "round", "figure", "value"))
        writer.writerows(bench.rows)
    tables = figures.tables(bench)
    print(figures.as_text(tables))
    if options.short:
        return figures.verdict(bench)
    figures.plot(bench, options.output)
    text = machine.description() + figures.as_markdown(tables)
    (options.output / "benchmarks-measured.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
