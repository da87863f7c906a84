"""From the figures of all rounds to tables, targets and plots."""

import numpy

NAN = float("nan")


def spread(values, form="{:.3f}"):
    """The median and the quartiles."""
    if len(values) == 0:
        return "-"
    median, low, high = (form.format(numpy.percentile(values, at)) for at in (50, 25, 75))
    return median if low == high else f"{median} ({low} to {high})"


def names(bench, prefix):
    """The measures whose names begin so, in the order in which they were taken."""
    found = dict.fromkeys(row[0] for row in bench.rows)
    return [name for name in found if name.startswith(prefix)]


def candidates(bench, measures):
    """Those that have a figure or a remark in one of the measures, in the order of the program."""
    found = {row[1] for row in bench.rows if row[0] in measures}
    found |= {candidate for name, candidate in bench.remarks if name in measures}
    return [candidate for candidate in order(bench) if candidate in found]


def order(bench):
    known = ["none", "glibc", "gperftools", "PAPI", "signal", "libprofil", "libprofil, 1 sub-tick",
             "libprofil, 10 sub-ticks", "bare", "bare, woken"]
    return known + sorted({row[1] for row in bench.rows} - set(known))


def mix_error(bench, candidate):
    """Total variation distance from the truth, by what a perfect sampler of the same CPU time has on
    average, by simulation: the mean over the rounds, and its standard error."""
    generator = numpy.random.default_rng(1)
    ratios = []
    columns = [[bench.values("mix", candidate, f"{kind}{i}") for i in range(5)]
               for kind in ("truth", "ticks")]
    if any(len(column) == 0 for kind in columns for column in kind):
        return NAN, NAN
    truth, ticks = (numpy.array(kind).T for kind in columns)
    for used, counted in zip(truth, ticks):
        share = used / used.sum()
        samples = int(round(used.sum() / 1e7))
        drawn = generator.multinomial(samples, share, 2000) / samples
        perfect = numpy.abs(drawn - share).sum(axis=1).mean() / 2
        ratios.append(numpy.abs(counted / max(counted.sum(), 1) - share).sum() / 2 / perfect)
    return float(numpy.mean(ratios)), float(numpy.std(ratios, ddof=1) / len(ratios) ** 0.5)


def cost_per_sample(bench, name, candidate):
    """us of CPU time for each sample, of the program and of the profiler's threads, round by round,
    beyond what the program has without a profiler."""
    without = bench.median(name, "none", "gap_ns_per_cpu_second")
    program = bench.values(name, candidate, "gap_ns_per_cpu_second") - without
    own = bench.values(name, candidate, "own_ns_per_cpu_second")
    rate = bench.values(name, candidate, "ticks") / (
        bench.values(name, candidate, "cpu_ns") / 1e9)
    return program / rate / 1e3, own / rate / 1e3


def table(title, header, rows, note=""):
    return {"title": title, "header": header, "rows": rows, "note": note}


def by_candidate(bench, title, measures, cell, note=""):
    """A row for each measure and a column for each candidate."""
    columns = candidates(bench, measures)
    rows = []
    for name in measures:
        row = [name.split(", ", 1)[-1]]
        for candidate in columns:
            row.append(bench.remarks.get((name, candidate)) or cell(name, candidate))
        rows.append(row)
    return table(title, [""] + columns, rows, note)


def survived(bench, name, candidate):
    if bench.median(name, candidate, "alive") != 1:
        return "no"
    faults = []
    if bench.median(name, candidate, "child_status") not in (0,) and "fork" in name:
        faults.append("the child does not end well")
    if "closefrom" in name:
        if bench.median(name, candidate, "lowest_descriptor") != 3:
            faults.append("takes a descriptor")
        if bench.median(name, candidate, "descriptors_left") != 2:
            faults.append("closes the program's")
    ratio = bench.median(name, candidate, "ratio")
    if ratio == ratio and not 0.9 <= ratio <= 1.1:
        faults.append(f"{ratio:.2f} of the ticks")
    return "; ".join(faults) or "yes"


def line(values):
    """Fixed part and slope of start or stop over threads, by least squares of the relative error."""
    x, y = numpy.array(values).T
    matrix = numpy.stack([numpy.ones_like(x), x]).T / y[:, None]
    return numpy.linalg.lstsq(matrix, numpy.ones_like(y), rcond=None)[0]


def start_stop_line(bench, key):
    values = [(float(name.split()[1]), bench.median(name, "libprofil", key))
              for name in names(bench, "startstop")]
    return line(values) if len(values) > 1 else (NAN, NAN)


def tables(bench):
    made = []

    def median_of(key, form="{:.3f}"):
        return lambda name, candidate: spread(bench.values(name, candidate, key), form)

    def add(title, measures, cell, note=""):
        if measures:
            made.append(by_candidate(bench, title, measures, cell, note))

    add("Ticks for each 10 ms of CPU time", names(bench, "ticks"), median_of("ratio"))
    add("How far two equal threads are apart, as a part of their mean", names(bench, "skew"),
        median_of("skew"))
    if names(bench, "mix"):
        columns = candidates(bench, ["mix"])
        row = ["error"] + ["{:.2f} +/- {:.2f}".format(*mix_error(bench, one)) for one in columns]
        made.append(table("A mix of 50, 30, 15, 4 and 1 %: error by that of a perfect sampler",
                          [""] + columns, [row], "Mean and standard error."))
    add("Threads that end early: ticks for each 10 ms of their CPU time", names(bench, "births"),
        median_of("ratio"))
    add("System time: ticks for each 10 ms of CPU time in read(2)", names(bench, "system"),
        median_of("ratio"))
    add("System calls that ended with EINTR", names(bench, "eintr"), median_of("eintr", "{:.0f}"))
    add("Does the program live on, with its ticks?", names(bench, "survival"),
        lambda name, candidate: survived(bench, name, candidate))
    add("Wake-ups of the library's threads, per second", names(bench, "wakeups"),
        median_of("wakeups_per_second", "{:.1f}"))
    add("CPU time of the library's threads, us per second", names(bench, "wakeups"),
        lambda name, candidate: spread(
            bench.values(name, candidate, "own_cpu_ns_per_second") / 1e3, "{:.0f}"))
    for key, what in (("resident_kib", "Resident memory added, KiB"),
                      ("rings_kib", "of it rings, KiB, of all CPUs"),
                      ("smallest_stack_kib", "The smaller thread's stack, KiB")):
        add(what, names(bench, "memory"), median_of(key, "{:.0f}"))
    for part, what in ((None, "CPU time of a sample, us: program and profiler"),
                       (0, "of it the program's"), (1, "of it the profiler's threads'")):
        add(what, names(bench, "cost"),
            lambda name, candidate, part=part: spread(
                sum(cost_per_sample(bench, name, candidate)) if part is None
                else cost_per_sample(bench, name, candidate)[part], "{:.2f}")
            if candidate != "none" else "0")
    for key, what in (("start_us", "Start, us"), ("stop_us", "Stop, us")):
        add(what, names(bench, "startstop"), median_of(key, "{:.0f}"))
    add("pthread_create() and pthread_join(), us", names(bench, "create"),
        median_of("create_us", "{:.1f}"))
    add("Samples lost at a period of 10 us", names(bench, "loss"), median_of("lost", "{:.0f}"))
    made.append(table("Reading a record", ["", "libprofil"],
                      [[key, spread(bench.values("drain", "libprofil", key), "{:.1f}")]
                       for key in ("ns_per_record", "instructions")
                       if len(bench.values("drain", "libprofil", key))] +
                      [["instructions", f"{instructions(bench):.1f}"]]))
    made.append(targets(bench))
    return made


def instructions(bench):
    """For each record: the difference of two runs of the same program."""
    few, many = (bench.median("drain", "libprofil", f"instructions_{rounds}")
                 for rounds in (100, 1100))
    return (many - few) / (1000 * bench.median("drain", "libprofil", "records_per_round"))


def cost_ratio(bench, hertz, reference):
    name = f"cost, {hertz} Hz"
    mine, other = (float(numpy.median(sum(cost_per_sample(bench, name, one))))
                   if len(bench.values(name, one, "ticks")) else NAN
                   for one in ("libprofil, 1 sub-tick", reference))
    return mine / other


def targets(bench):
    """What libprofil is to reach, and what it has."""
    rows = []
    cpus = __import__("os").cpu_count()

    def add(what, value, bound, form="{:.2f}"):
        if value == value:
            rows.append([what, form.format(value), f"at most {bound}",
                         "yes" if value <= bound else "no"])

    for name in names(bench, "ticks"):
        for candidate in ("libprofil", "libprofil, 10 sub-ticks"):
            add(f"{name}: |1 - ratio|, {candidate}",
                abs(1 - bench.median(name, candidate, "ratio")), 0.01, "{:.4f}")
    add("mix: error by a perfect sampler's", mix_error(bench, "libprofil")[0], 1.1)
    for hertz in (1000, 10000):
        add(f"cost at {hertz} Hz, by a signal handler's", cost_ratio(bench, hertz, "signal"), 0.7)
        add(f"cost at {hertz} Hz, by the bare event's", cost_ratio(bench, hertz, "bare, woken"), 1.15)
    add("ns to read a record", bench.median("drain", "libprofil", "ns_per_record"), 40, "{:.1f}")
    add("system calls while reading", bench.median("drain", "libprofil", "system_calls"), 0,
        "{:.0f}")
    for key in ("start_us", "stop_us"):
        fixed, slope = start_stop_line(bench, key)
        add(f"{key[:-3]}: fixed, us", fixed, 500, "{:.0f}")
        add(f"{key[:-3]}: for each thread and CPU, us", slope / cpus, 20, "{:.1f}")
    add("pthread_create() and join, by that without",
        bench.median("create", "libprofil", "create_us") / bench.median("create", "none",
                                                                        "create_us"), 1.3)
    for name in names(bench, "loss"):
        add(f"{name}: samples lost", bench.median(name, "libprofil, 1 sub-tick", "lost"), 0,
            "{:.0f}")
    add("ring of a CPU, KiB", bench.median("memory", "libprofil", "rings_kib") /
        bench.median("memory", "libprofil", "rings"), 64, "{:.0f}")
    add("stack of the sampler, KiB", bench.median("memory", "libprofil", "smallest_stack_kib"), 64,
        "{:.0f}")
    add("wake-ups idle, per second", bench.median("wakeups, idle", "libprofil",
                                                  "wakeups_per_second"), 0, "{:.1f}")
    add("wake-ups busy, per second", bench.median("wakeups, busy", "libprofil",
                                                  "wakeups_per_second"), 110, "{:.0f}")
    add("EINTR", bench.median("eintr", "libprofil", "eintr"), 0, "{:.0f}")
    return table("Targets of libprofil", ["", "measured", "target", "met"], rows)


def verdict(bench):
    """Of the short form: 1 if something is wrong that no noise explains."""
    wrong = []

    def require(holds, what):
        if not holds:
            wrong.append(what)

    for name in names(bench, "ticks"):
        ratio = bench.median(name, "libprofil", "ratio")
        # A second on two CPUs leaves up to 4 % in the phases; nothing can make it more than 1.
        require(0.9 <= ratio <= 1.02, f"{name}: ratio {ratio:.3f}")
    require(bench.median("drain", "libprofil", "system_calls") == 0, "draining calls the system")
    require(bench.median("eintr", "libprofil", "eintr") == 0, "calls were interrupted")
    require(bench.median("wakeups, idle", "libprofil", "wakeups") <= 2, "it wakes up when idle")
    for word in ("exec", "fork", "closefrom"):
        name = f"survival, {word}"
        require(bench.median(name, "libprofil", "alive") == 1, f"{word} is not survived")
    for what in wrong:
        print("wrong:", what)
    return 1 if wrong else 0


def as_text(all_tables):
    lines = []
    for one in all_tables:
        rows = [one["header"], *one["rows"]]
        widths = [max(len(row[i]) for row in rows) for i in range(len(one["header"]))]
        lines += [one["title"], ""]
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                  for row in rows]
        lines += ["", one["note"]] if one["note"] else [""]
    return "\n".join(lines)


def as_markdown(all_tables):
    lines = []
    for one in all_tables:
        lines += [f"## {one['title']}", "", "| " + " | ".join(one["header"]) + " |",
                  "|" + "---|" * len(one["header"])]
        lines += ["| " + " | ".join(row) + " |" for row in one["rows"]]
        lines += ["", one["note"], ""] if one["note"] else [""]
    return "\n".join(lines)


# --- plots ---

def bars(axes, bench, measures, value, title):
    columns = [one for one in candidates(bench, measures)
               if any(len(bench.values(name, one, "ticks")) for name in measures)]
    width = 0.8 / max(len(columns), 1)
    for i, candidate in enumerate(columns):
        heights = [numpy.percentile(found, (25, 50, 75)) if len(found) else (NAN,) * 3
                   for found in (value(name, candidate) for name in measures)]
        low, middle, high = numpy.array(heights).T
        axes.bar(numpy.arange(len(measures)) + i * width, middle, width, label=candidate,
                 yerr=(middle - low, high - middle), capsize=2)
    axes.set_xticks(numpy.arange(len(measures)) + 0.4 - width / 2)
    axes.set_xticklabels([name.split(", ", 1)[-1] for name in measures])
    axes.set_title(title)
    axes.legend(fontsize=7)


def plot(bench, directory):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    plots = (
        ("accuracy", names(bench, "ticks"), "Ticks for each 10 ms of CPU time",
         lambda name, one: bench.values(name, one, "ratio")),
        ("births", names(bench, "births"), "Threads that end early: ticks for each 10 ms",
         lambda name, one: bench.values(name, one, "ratio")),
        ("cost", names(bench, "cost"), "CPU time of a sample, us: program and profiler",
         lambda name, one: sum(cost_per_sample(bench, name, one)) if one != "none"
         else numpy.array([])),
    )
    for name, measures, title, value in plots:
        figure, axes = pyplot.subplots(figsize=(8, 4))
        bars(axes, bench, measures, value, title)
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(directory / f"{name}.{kind}", dpi=100, metadata={"Date": None}
                           if kind == "svg" else None)
        pyplot.close(figure)
