"""What the figures were measured on."""

import os
import platform
import re
import shutil
import subprocess


def first_line(command):
    if not shutil.which(command[0]):
        return None
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    return result.stdout.splitlines()[0].strip() if result.stdout else None


def package(name):
    if not shutil.which("dpkg-query"):
        return None
    result = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=False)
    return result.stdout or None


def read(path, pattern):
    try:
        with open(path, encoding="utf-8") as file:
            match = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return match.group(1).strip() if match else None


def tick_rate():
    """The kernel's HZ by its configuration, if that can be read."""
    return read(f"/boot/config-{platform.release()}", r"^CONFIG_HZ=(\d+)")


def describe():
    """Pairs of what and which. No name of the machine, and no path on it."""
    virtual = re.search(r"\bhypervisor\b", read("/proc/cpuinfo", r"^(?:flags|Features)\s*:(.*)") or "")
    pairs = [
        ("CPU", read("/proc/cpuinfo", r"^model name\s*:(.*)") or platform.machine()),
        ("CPUs", str(len(os.sched_getaffinity(0))) + (", of a virtual machine" if virtual else "")),
        ("kernel", "Linux " + re.match(r"[\d.]+", platform.release()).group(0)),
        ("kernel.perf_event_paranoid", read("/proc/sys/kernel/perf_event_paranoid", r"^(.*)$")),
        ("user", "root" if os.geteuid() == 0 else "not root"),
        ("load average at the end", "%.1f, %.1f, %.1f" % os.getloadavg()),
        ("distribution", read("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)')),
        ("C library", " ".join(platform.libc_ver())),
        ("compiler", first_line(["gcc", "--version"])),
        ("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                              r"^(.*)$")),
        ("PAPI", package("libpapi-dev")),
        ("gperftools", package("libgoogle-perftools-dev")),
        ("perf", first_line(["perf", "--version"])),
        ("valgrind", package("valgrind")),
    ]
    return [(name, value) for name, value in pairs if value]
