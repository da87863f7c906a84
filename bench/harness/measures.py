"""What is measured: one Measure for each row of the tables."""

import random
from dataclasses import dataclass

import numpy as np

from .candidates import BY_NAME, CANDIDATES
from .figures import chance_distance, distance, quartiles

PERIOD = 10_000_000
RATES = {100: 10_000_000, 1000: 1_000_000, 10000: 100_000}
BIRTHS = {1: 300, 2: 300, 4: 150, 9: 70, 15: 40, 100: 8}
THREADS = {1: 9, 2: 9, 4: 7, 8: 5, 32: 3}
STARTSTOP = {1: 15, 10: 15, 100: 9, 1000: 5, 5000: 3}
HOT_FUNCTIONS = 5


@dataclass(frozen=True)
class Measure:
    section: str
    name: str
    arguments: tuple
    figures: tuple  # (what the program calls it, what the table calls it, unit)
    rounds: int
    candidates: tuple
    seeded: bool = False  # each round has a seed of its own as its last argument


EVERYONE = tuple(candidate.name for candidate in CANDIDATES if candidate.name != "none")
INSIDE = tuple(name for name in EVERYONE if name != "perf record")
AT_ANY_RATE = ("none", "libprofil", "gperftools", "PAPI", "signal", "bare")
FOR_ALL_THREADS = ("libprofil", "libprofil/10", "glibc", "gperftools", "PAPI", "signal", "bare")


def ticks_row(threads):
    return f"{threads} thread{'s' * (threads > 1)} of 1 s"


def births_row(milliseconds):
    return f"{BIRTHS[milliseconds]} threads of {milliseconds} ms, one after the other"


AGAIN = "start and stop, 1 thread, the eleventh time in a process"


CREATE_HERE = "pthread_create and join, on one CPU"
CREATE_THERE = "pthread_create and join, from one CPU to another"


def startstop_row(threads):
    return f"start and stop, {threads} thread{'s' * (threads > 1)}"


def accuracy():
    for threads, rounds in THREADS.items():
        yield Measure("accuracy", ticks_row(threads),
                      ("ticks", PERIOD, threads, 1), (("ratio", "ticks per 10 ms", ""),),
                      rounds, EVERYONE)
    for threads in (2, 4):
        yield Measure("accuracy", f"skew of {threads} equal threads of 1 s",
                      ("skew", PERIOD, threads, 1), (("skew", "(most - least) / mean", ""),),
                      7, EVERYONE)
    for threads, rounds in ((1, 25), (4, 9)):
        yield Measure("accuracy", f"error of a known mix, {threads} thread{'s' * (threads > 1)}",
                      ("mix", PERIOD, threads, 1), (("error", "error / that of chance", ""),),
                      rounds, EVERYONE, seeded=True)
    for milliseconds, count in BIRTHS.items():
        yield Measure("accuracy", births_row(milliseconds),
                      ("births", PERIOD, milliseconds, count), (("ratio", "ticks per 10 ms", ""),),
                      5, EVERYONE)
    yield Measure("accuracy", "system time", ("system", PERIOD, 0.5),
                  (("ratio", "ticks per 10 ms", ""),), 5, EVERYONE)


def manners():
    yield Measure("manners", "sleeps beside busy threads", ("eintr", PERIOD, 2),
                  (("eintr", "EINTR", ""), ("calls", "calls", "")), 3, INSIDE)
    for word in ("exec", "fork", "closefrom"):
        figures = (("alive", "alive", ""),) + (("ratio", "ticks per 10 ms", ""),) * (word != "exec")
        if word == "closefrom":
            figures += (("lowest_descriptor", "lowest descriptor", ""),
                        ("descriptors_left", "descriptors left", ""))
        yield Measure("manners", word, ("survival", PERIOD, word), figures, 3, INSIDE)
    for word, seconds in (("idle", 3), ("busy", 2)):
        yield Measure("manners", f"wake-ups, {word}", ("wakeups", PERIOD, word, seconds),
                      (("wakeups_per_second", "wake-ups", "1/s"), ("wakeups", "in all", ""),
                       ("own_cpu_ns_per_second", "own CPU time", "ns/s"),
                       ("interrupted", "interrupted sleeps", "")), 3, INSIDE)
    yield Measure("manners", "memory", ("memory", PERIOD),
                  (("rings_kib", "rings", "KiB"), ("rings", "number of rings", ""),
                   ("resident_kib", "resident", "KiB"), ("mapped_kib", "mapped", "KiB"),
                   ("smallest_stack_kib", "sampler's stack", "KiB")), 3, INSIDE)


def cost(rounds_of_work):
    for rate, period in RATES.items():
        yield Measure("cost", f"gaps at {rate} Hz", ("gaps", period, 0.5),
                      (("gap_ns_per_cpu_second", "taken from the program", "ns/s"),
                       ("own_ns_per_cpu_second", "own CPU time", "ns/s"),
                       ("ticks", "samples", ""), ("cpu_ns", "CPU time", "ns")), 15,
                      AT_ANY_RATE + (("glibc",) if rate == 100 else ()))
    for rate in (1000, 10000):
        yield Measure("cost", f"fixed work at {rate} Hz", ("work", RATES[rate], 2, rounds_of_work),
                      (("cpu_ns", "CPU time", "ns"), ("ticks", "samples", "")), 25,
                      ("none", "libprofil", "signal", "bare"))
    for threads, rounds in STARTSTOP.items():
        yield Measure("cost", startstop_row(threads),
                      ("startstop", PERIOD, threads),
                      (("start_us", "start", "us"), ("stop_us", "stop", "us"),
                       ("start_cpu_us", "start, CPU time", "us"),
                       ("stop_cpu_us", "stop, CPU time", "us")), rounds, FOR_ALL_THREADS)
    yield Measure("cost", AGAIN, ("startstop", PERIOD, 1, 10),
                  (("start_us", "start", "us"), ("stop_us", "stop", "us")), 15,
                  ("libprofil", "libprofil/10", "glibc", "bare"))
    yield Measure("cost", "pthread_create and join", ("create", PERIOD, 1000),
                  (("create_us", "time", "us"), ("create_cpu_us", "CPU time", "us")), 9,
                  ("none",) + INSIDE)
    for row, other in ((CREATE_HERE, 0), (CREATE_THERE, 1)):
        yield Measure("cost", row, ("turns", PERIOD, 100, 20, other),
                      (("create_ratio", "with, over without", ""), ("create_off_us", "without", "us"),
                       ("create_us", "with", "us")), 9,
                      ("none", "libprofil", "libprofil/10", "bare"))


def loss(microseconds, threads, seconds):
    return Measure("loss", f"a sample each {microseconds} us, {threads} threads of {seconds} s",
                   ("loss", microseconds * 1000, threads, seconds),
                   (("lost", "lost", ""), ("ticks", "samples", ""),
                    ("ratio", "samples per period", "")), 1, ("libprofil",))


# What the short form runs, and how often: no more than fits into a minute.
SHORT = {"1 thread of 1 s": 1, "2 threads of 1 s": 1,
         "skew of 2 equal threads of 1 s": 1, "system time": 1,
         "150 threads of 4 ms, one after the other": 1,
         "sleeps beside busy threads": 1, "exec": 1, "fork": 1, "closefrom": 1,
         "wake-ups, idle": 1, "wake-ups, busy": 1, "memory": 1,
         "gaps at 10000 Hz": 2, "start and stop, 1 thread": 3, "start and stop, 100 threads": 1,
         CREATE_HERE: 1, CREATE_THERE: 1}
SHORT_CANDIDATES = ("none", "libprofil", "libprofil/10", "signal", "bare")
SHORT_ACCURACY_CANDIDATES = ("libprofil", "libprofil/10", "glibc")


def shortened(measure):
    allowed = (SHORT_ACCURACY_CANDIDATES if measure.section == "accuracy" else
               ("libprofil",) if measure.section == "manners" else SHORT_CANDIDATES)
    names = tuple(name for name in measure.candidates if name in allowed)
    return Measure(measure.section, measure.name, measure.arguments, measure.figures,
                   SHORT[measure.name], names, measure.seeded)


def add_error(figures, period, generator):
    """The error of a mix as a multiple of what chance gives a perfect sampler on the same truth."""
    if "truth0" not in figures:
        return
    truth = [figures[f"truth{index}"] for index in range(HOT_FUNCTIONS)]
    ticks = [figures[f"ticks{index}"] for index in range(HOT_FUNCTIONS)]
    error = distance(truth, ticks)
    if error is not None:
        figures["error"] = error / chance_distance(truth, period, generator)


class Results:
    """Every figure of every round, by measure and candidate."""

    def __init__(self):
        self.measures = []
        self.rounds = {}  # (measure name, candidate name) -> [figures, ...]

    def add(self, measure, name, figures):
        if measure not in self.measures:
            self.measures.append(measure)
        self.rounds.setdefault((measure.name, name), []).append(figures)

    def problem(self, measure_name, name):
        """The first reason why there is no figure, or None."""
        problems = [figures["problem"] for figures in self.rounds.get((measure_name, name), [])
                    if "problem" in figures]
        return problems[0] if problems else None

    def values(self, measure_name, name, figure):
        return [figures[figure] for figures in self.rounds.get((measure_name, name), [])
                if figure in figures]

    def quartiles(self, measure_name, name, figure):
        values = self.values(measure_name, name, figure)
        return quartiles(values) if values else None

    def median(self, measure_name, name, figure):
        result = self.quartiles(measure_name, name, figure)
        return result[1] if result else None

    def mean(self, measure_name, name, figure):
        values = self.values(measure_name, name, figure)
        return float(np.mean(values)) if values else None


def run(runner, measure, results, seed, say):
    """All rounds of one measure; in each, the candidates in another order."""
    shuffle = random.Random(f"{seed} {measure.name}")
    generator = np.random.default_rng(seed)
    broken = set()
    say(measure.name)
    for number in range(measure.rounds):
        names = list(measure.candidates)
        shuffle.shuffle(names)
        for name in names:
            if name in broken:
                continue
            arguments = measure.arguments + ((number + 1,) if measure.seeded else ())
            figures = runner.run(BY_NAME[name], arguments)
            add_error(figures, PERIOD, generator)
            results.add(measure, name, figures)
            if "problem" in figures:
                broken.add(name)
