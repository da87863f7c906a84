"""What the figures were measured on."""

import os
import platform
import subprocess


def first(path, key):
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":" if ":" in line else "=")
            if name.strip() == key:
                return value.strip().strip('"')
    return "unknown"


def version(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "not installed"
    return (done.stdout.splitlines() or ["unknown"])[0]


def package(name):
    return version(["dpkg-query", "-W", "-f", "${Version}", name])


def description():
    """A list, in Markdown."""
    items = (
        ("processor", first("/proc/cpuinfo", "model name")),
        ("CPUs", os.cpu_count()),
        ("hypervisor", "yes" if "hypervisor" in first("/proc/cpuinfo", "flags") else "none seen"),
        ("kernel", platform.release().split("-")[0]),
        ("kernel.perf_event_paranoid", open("/proc/sys/kernel/perf_event_paranoid",
                                            encoding="ascii").read().strip()),
        ("distribution", first("/etc/os-release", "PRETTY_NAME")),
        ("compiler", version(["gcc", "--version"])),
        ("glibc", package("libc6")),
        ("PAPI", package("libpapi-dev")),
        ("gperftools", package("libgoogle-perftools-dev")),
        ("user", "root" if os.geteuid() == 0 else "unprivileged"),
        ("load before", "{:.1f}".format(os.getloadavg()[2])),
    )
    return "".join(f"- {name}: {value}\n" for name, value in items) + "\n"
