"""Tables for the terminal and for doc/benchmarks.md, and the CSV files."""

import csv
import textwrap

from .candidates import CANDIDATES
from .measures import AGAIN, CREATE_HERE, CREATE_THERE, RATES, startstop_row
from .targets import gap_cost, startstop_fit, work_cost

TITLES = {"accuracy": "Accuracy", "manners": "What the program notices", "cost": "Cost",
          "loss": "Loss"}


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e5:
        return f"{value:.3g}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.4g}"


def cell(results, measure, name, figure):
    triple = results.quartiles(measure.name, name, figure)
    if triple is None:
        return "no" if results.problem(measure.name, name) else "-"
    low, middle, high = triple
    if low == high:
        return number(middle)
    return f"{number(middle)} ({number(low)}..{number(high)})"


def rows(results, section):
    """The names of the columns, and the cells of each row."""
    measures = [measure for measure in results.measures if measure.section == section]
    present = {name for measure in measures for name in measure.candidates}
    names = [candidate.name for candidate in CANDIDATES if candidate.name in present]
    body = []
    for measure in measures:
        for figure, title, unit in measure.figures:
            label = f"{measure.name}: {title}" + (f", {unit}" if unit else "")
            body.append([label] + [cell(results, measure, name, figure)
                                   if name in measure.candidates else ""
                                   for name in names])
    return ["", *names], body


def cost_rows(results):
    """ns per sample: program + profiler's own, by gaps; in all, by fixed work."""
    names = ("libprofil", "signal", "bare", "glibc", "gperftools")
    body = []
    for rate in RATES:
        gaps = [gap_cost(results, rate, name) for name in names]
        if any(gaps):
            body.append([f"{rate} Hz: taken from the program + own, ns"] +
                        [f"{number(pair[0])} + {number(pair[1])}" if pair else "-"
                         for pair in gaps])
        work = [work_cost(results, rate, name) for name in names]
        if any(work):
            body.append([f"{rate} Hz: by fixed work, in all, ns"] +
                        [number(value) for value in work])
    return ["cost per sample", *names], body


def startstop_rows(results, cpus):
    names = ("libprofil", "glibc", "gperftools", "bare")
    body = []
    for call in ("start", "stop"):
        fits = [startstop_fit(results, name, f"{call}_us", cpus) for name in names]
        if any(fit[0] is not None for fit in fits):
            body.append([f"{call}: fixed + for each thread and CPU, us"] +
                        [f"{number(fit[0])} + {number(fit[1])}" if fit[0] is not None else "-"
                         for fit in fits])
        again = [results.median(AGAIN, name, f"{call}_us") for name in names]
        if any(again):
            body.append([f"{call}: 1 thread, the eleventh time in a process, us"] +
                        [number(value) if value else "-" for value in again])
    return ["start and stop", *names], body


def limits(results):
    """What stands in the way of the targets that are missed, with this run's figures."""
    lines = []
    shares = []
    for rate in RATES:
        if rate == 100:
            continue
        bare, signal = (gap_cost(results, rate, name) for name in ("bare", "signal"))
        if bare and signal:
            shares.append(f"{number(sum(bare) / sum(signal))} at {rate} Hz")
    if shares:
        lines.append(
            "**Cost over a signal's.** Most of what a sample costs is the kernel's timer interrupt,"
            " which a signal needs as well. The bare event alone, with nobody who reads it, takes "
            + " and ".join(shares) + " of what the signal and its handler take, by gaps. That is the"
            " limit, and libprofil's ratio to the bare event is in the table.")
    starts = [results.median(startstop_row(1), name, "start_us") for name in ("bare", "libprofil")]
    later = [results.median(AGAIN, name, "start_us") for name in ("bare", "libprofil")]
    if all(starts) and all(later):
        lines.append(
            f"**The fixed part of start and stop.** The first start in a process took the bare event"
            f" {number(starts[0])} us, most of it in the kernel's own preparations, and libprofil"
            f" {number(starts[1])} us; the eleventh {number(later[0])} and {number(later[1])} us."
            " What libprofil has beside the bare event is two threads, which start on another CPU:"
            " doc/design-notes.md has the parts.")
    created = [number(results.median(row, name, "create_ratio"))
               for row in (CREATE_HERE, CREATE_THERE) for name in ("bare", "libprofil")]
    if "-" not in created:
        lines.append(
            "**Creating and joining a thread.** The kernel makes the events of the new thread, one for"
            " each CPU, and takes them away at its end. With the bare event this takes"
            f" {created[0]} of the time without on one CPU and {created[2]} from one CPU to another;"
            f" with libprofil {created[1]} and {created[3]}.")
    lines.append(
        "**Ticks.** Each thread loses, on each CPU that it ran on, what it used since its last tick"
        " there: half a tick on average, whatever the profiler is that has an event for each (the"
        " bare event has the same figures). Of 100 ticks of a thread that moved between two CPUs one"
        " is lost, of 1000 one as well. Timers of the process (glibc, gperftools) lose it once for"
        " all threads, but give the ticks to whichever thread they meet: see the skew.")
    lines.append(
        "**Short threads.** The default begins with samples of 10 ms, which see none of threads that"
        " are shorter, as with the bare event. It goes over to 1 ms when that is noticed; what was"
        " missed until then is the difference to libprofil/10. A timer of the process goes on from"
        " thread to thread and misses nothing, where one thread runs at a time.")
    return lines


def drain_rows(figures):
    if not figures:
        return ["", ""], []
    return ["drain loop", ""], [
        ["ns per record (quartiles)", f"{number(figures.get('ns_per_record'))} "
         f"({number(figures.get('ns_per_record_q1'))}..{number(figures.get('ns_per_record_q3'))})"],
        ["instructions per record", number(figures["instructions"])],
        ["functions in it, atomic read-modify-writes in these",
         f"{figures['functions']}, {len(figures['atomic'])}"],
        ["makes system calls", "yes" if figures["system_calls"] else "no"]]


def measured(target):
    if target.figure is None or not target.interval:
        return number(target.figure)
    return f"{number(target.figure)} ({number(target.interval[0])}..{number(target.interval[1])})"


def target_rows(targets):
    return ["target", "limit", "measured", ""], [
        [target.text, target.limit, measured(target), target.verdict()]
        for target in targets]


def problems(results):
    """Why there is no figure: one line for each measure and candidate."""
    lines = {}
    for measure in results.measures:
        for name in measure.candidates:
            problem = results.problem(measure.name, name)
            if problem:
                lines.setdefault((name, problem), []).append(measure.name)
    return [f"{name}: {problem} ({', '.join(measures) if len(measures) < 4 else 'all such rows'})"
            for (name, problem), measures in lines.items()]


def terminal(head, body):
    if not body:
        return ""
    widths = [max(len(str(row[column])) for row in [head, *body]) for column in range(len(head))]
    return "\n".join("  ".join(str(value).ljust(width) for value, width in zip(row, widths)).rstrip()
                     for row in [head, *body]) + "\n"


def markdown(head, body):
    if not body:
        return ""
    escaped = [[str(value).replace("|", "\\|") for value in row] for row in [head, *body]]
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def tables(results, drain_figures, targets, cpus):
    """(title, head, body) of each table."""
    yield ("Targets", *target_rows(targets))
    for section in ("accuracy", "manners"):
        yield (TITLES[section], *rows(results, section))
    yield ("Cost per sample", *cost_rows(results))
    yield ("Start and stop", *startstop_rows(results, cpus))
    yield ("The drain loop", *drain_rows(drain_figures))
    yield ("Cost, as measured", *rows(results, "cost"))
    yield (TITLES["loss"], *rows(results, "loss"))


def write_csv(results, drain_figures, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["section", "measure", "figure", "unit", "candidate", "rounds",
                         "first quartile", "median", "third quartile", "problem"])
        for measure in results.measures:
            for name in measure.candidates:
                for figure, title, unit in measure.figures:
                    values = results.values(measure.name, name, figure)
                    triple = results.quartiles(measure.name, name, figure) or ("", "", "")
                    writer.writerow([measure.section, measure.name, title, unit, name, len(values),
                                     *(f"{value:.6g}" if value != "" else "" for value in triple),
                                     results.problem(measure.name, name) or ""])
        for name in ("ns_per_record", "instructions"):
            if drain_figures and drain_figures.get(name) is not None:
                writer.writerow(["drain", "drain loop", name, "", "libprofil", 1, "",
                                 f"{drain_figures[name]:.6g}", "", ""])


ABOUT = """# Benchmarks

libprofil beside what else can be had, in one run on one machine. `bench/run` makes this page, the
plots and the CSV files anew:

    bench/run                   # all of it; see bench/run --help for how long
    bench/run --short           # in a minute, to the terminal only
    bench/run --with-loss       # also periods of 10 us; can make a small virtual machine hang

Each cell is the median of the rounds, with the quartiles in brackets. In each round the candidates
run one after the other in another order, each in a process of its own. "no" stands for a figure that
cannot be had, with the reason under the table; "-" for one that makes no sense there. Only CPU time
is counted against CPU time; the times of start, stop and pthread_create are by the wall clock.

"""

NOTES = """## What the rows mean

- **Ticks per 10 ms**: the ticks, or samples, times 10 ms, over the CPU time of the program's threads
  by their own clocks. 1 is right.
- **Skew**: equal threads, a function each; how far the most and the least ticks are apart, over the
  mean. With 100 ticks each, one tick more or less is 1 %.
- **Error of a known mix**: five functions of 50, 30, 15, 4 and 1 % of the time take turns in slices
  of at most a millisecond, timed by the thread's clock. Half the sum of the differences between
  shares of ticks and shares of time, over what a perfect sampler of 10 ms has on average by chance
  alone (multinomial, simulated on the same truth). Its target is compared with the mean.
- **System time**: a program that does nothing but read /dev/zero.
- **closefrom**: all descriptors from 3 up are closed while the profile is on; ticks must go on
  coming, and stop must not close descriptors that the program has opened since (2 are left of 2).
- **Taken from the program**: a thread on one CPU looks at the clock without pause, and what goes
  missing in gaps of 0.5 to 300 us is counted; the gaps without a profiler are taken off. **Own** is
  the CPU time of the profiler's threads, which are on the other CPU. **By fixed work**: two
  threads do a fixed amount of work, and the CPU time of the whole process without a profiler is
  taken off.
- **Not resolved**: the brackets behind a ratio of costs are what it lies in nine times in ten when
  the rounds are drawn anew; the target is within them.
- **pthread_create and join, on one CPU, from one CPU to another**: the time with the profiler over the
  time without, in turn in one process, 100 threads each time. Where the scheduler is free to choose,
  as in the row without these words, its choice makes more of a difference than the profiler.
- **Start and stop**: a line through the medians at 1 to 5000 threads, each the first time in its
  process. That time, the kernel may set up perf events for the whole machine, and the process
  touches the profiler's code and data for the first time; the eleventh time is without these.
- **Loss**: busy threads on all CPUs. Samples per period below 1 with none lost are those that the
  kernel did not take: its timer skips what has passed before it is set again. With still shorter
  periods it does little else.
- **PAPI** profiles the threads that set it up themselves, which these do. Where the processor has no
  counters, as in most virtual machines, PAPI uses no perf event; the benchmark has it believe that
  the kernel's software events are the processor's.
- **glibc** ticks come with the kernel's timer tick; **gperftools** and **glibc** go no faster than
  it.
"""


def page(machine, results, drain_figures, targets, cpus, plots):
    """The text of doc/benchmarks.md."""
    parts = [ABOUT, "## Machine\n\n" + markdown(["", ""], machine) + "\n",
             "## Candidates\n\n" + markdown(
                 ["name", "what it is"],
                 [[candidate.name, candidate.description] for candidate in CANDIDATES]) + "\n"]
    for title, head, body in tables(results, drain_figures, targets, cpus):
        if not body:
            continue
        parts.append(f"## {title}\n\n" + markdown(head, body) + "\n")
        if title == "Targets":
            parts.append("## What stands in the way\n\n" + "".join(
                textwrap.fill(line, 100, initial_indent="- ", subsequent_indent="  ",
                              break_on_hyphens=False) + "\n"
                for line in limits(results)) + "\n")
    reasons = problems(results)
    if reasons:
        parts.append("## Why there is no figure\n\n" + "".join(f"- {line}\n" for line in reasons)
                     + "\n")
    if plots:
        parts.append("## Plots\n\n" + "".join(
            f"![{title}](benchmarks/{name}.svg)\n\n" for name, title in plots))
    return "".join(parts) + NOTES
