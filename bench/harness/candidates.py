"""The profilers that are compared, and how a program of one is run."""

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Candidate:
    name: str
    program: str
    environment: dict = field(default_factory=dict, hash=False, compare=False)
    description: str = ""


CANDIDATES = (
    Candidate("none", "subject-none", {}, "no profiler"),
    Candidate("libprofil", "subject-libprofil", {}, "libprofil as it is by default"),
    Candidate("libprofil/10", "subject-libprofil", {"PROFIL_SUBTICKS": "10"},
              "libprofil with `PROFIL_SUBTICKS=10`"),
    Candidate("glibc", "subject-glibc", {}, "the C library's `profil()`"),
    Candidate("gperftools", "subject-gperftools", {},
              "gperftools' CPU profiler, `ProfilerStart()`"),
    Candidate("PAPI", "subject-papi", {}, "`PAPI_sprofil()` on `perf::TASK-CLOCK`"),
    Candidate("perf record", "perf", {},
              "`perf record -e task-clock -F 100` from outside the process"),
    Candidate("signal", "subject-signal", {},
              "a perf event for each thread that sends it a signal, with a handler that counts"),
    Candidate("bare", "subject-bare", {},
              "the events that libprofil opens and a ring that nobody reads: the limit"),
)

BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}

HOT_SYMBOLS = ("run_hot_one", "run_hot_two", "run_hot_three", "run_hot_four", "run_hot_five")


class Runner:
    """Runs programs of the build directory; nothing of them stays."""

    def __init__(self, build):
        self.programs = os.path.join(os.path.abspath(build), "bench")

    def has(self, candidate):
        if candidate.program == "perf":
            return subprocess.run(["sh", "-c", "command -v perf"], stdout=subprocess.DEVNULL,
                                  check=False).returncode == 0
        return os.access(os.path.join(self.programs, candidate.program), os.X_OK)

    def run(self, candidate, arguments, limit=60):
        """The figures by name, or {"problem": why there are none}."""
        if not self.has(candidate):
            return {"problem": "not there when the benchmark was built"}
        with tempfile.TemporaryDirectory() as directory:
            if candidate.program == "perf":
                return self._run_under_perf(arguments, directory, limit)
            return self._run(candidate, arguments, directory, limit)

    def path(self, program):
        return os.path.join(self.programs, program)

    def _run(self, candidate, arguments, directory, limit, prefix=()):
        command = [*prefix, self.path(candidate.program), *map(str, arguments)]
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("PROFIL_", "CPUPROFILE", "BENCH_"))}
        environment.update(candidate.environment)
        try:
            result = subprocess.run(command, cwd=directory, env=environment, timeout=limit,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, check=False)
        except subprocess.TimeoutExpired:
            return {"problem": f"did not end within {limit} s"}
        return parse(result)

    def _run_under_perf(self, arguments, directory, limit):
        """Samples are counted in the text that perf script makes of the file."""
        if arguments[0] not in ("ticks", "mix", "births", "system", "skew"):
            return {"problem": "works from outside the process"}
        data = os.path.join(directory, "perf.data")
        prefix = ["perf", "record", "-q", "-e", "task-clock", "-F", "100", "-o", data, "--"]
        figures = self._run(BY_NAME["none"], arguments, directory, limit, prefix)
        if "problem" in figures:
            return figures
        script = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                timeout=limit, check=False)
        symbols = [line.split()[1] for line in script.stdout.splitlines() if len(line.split()) > 1]
        for index, symbol in enumerate(HOT_SYMBOLS):
            figures[f"ticks{index}"] = symbols.count(symbol)
        if "cpu_ns" in figures:
            figures["ticks"] = len(symbols)
            figures["ratio"] = len(symbols) * 1e7 / figures["cpu_ns"]
        if arguments[0] == "skew":
            counts = [figures[f"ticks{index}"] for index in range(int(arguments[2]))]
            figures["skew"] = (max(counts) - min(counts)) * len(counts) / max(sum(counts), 1)
        return figures


def parse(result):
    figures = {}
    for line in result.stdout.splitlines():
        name, _, value = line.partition("=")
        if name in ("unsupported", "failed"):
            return {"problem": value}
        figures[name] = float(value)
    if result.returncode < 0:
        return {"problem": f"ended by {signal.Signals(-result.returncode).name}"}
    if result.returncode > 0:
        return {"problem": f"ended with status {result.returncode}"}
    return figures
