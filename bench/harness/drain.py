"""The drain loop by itself: time, instructions, system calls, atomic operations."""

import os
import re
import shutil
import subprocess
import tempfile

# Read-modify-write instructions of x86-64 and of aarch64. xchg with memory is locked by itself.
ATOMIC = re.compile(r"\block\b|\bxchg\s+[^,]*\(|\bxchg\s+[^,]+,[^,]*\(|"
                    r"\b(ldxr|ldaxr|stxr|stlxr|swp|cas|ldadd|ldset|ldclr)[a-z]*\b")


def output(command, limit=60, environment=None):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            stdin=subprocess.DEVNULL, timeout=limit, check=False,
                            env=environment)
    return result.returncode, result.stdout


def timed(program, rounds):
    _, text = output([program, "time", str(rounds)])
    return {name: float(value) for name, value in
            (line.split("=") for line in text.splitlines())}


def counted(program):
    """Instructions per record, and the functions that they are in."""
    if not shutil.which("valgrind"):
        return None, []
    rounds, records = 20, 0
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "callgrind.out")
        status, text = output(["valgrind", "--tool=callgrind", "--collect-atstart=no",
                               "--toggle-collect=drain_ring", f"--callgrind-out-file={data}",
                               program, "count", str(rounds)], 120)
        match = re.search(r"records=(\d+)", text)
        if status != 0 or not match or not os.path.exists(data):
            return None, []
        records = int(match.group(1))
        with open(data, encoding="utf-8") as file:
            content = file.read()
    total = re.search(r"^(?:summary|totals): (\d+)", content, re.M)
    names = sorted(set(re.findall(r"^c?fn=\(\d+\) (\S+)", content, re.M)))
    return (int(total.group(1)) / records if total else None), names


def atomic_instructions(program, names):
    """Those in the functions; and how many of the functions were looked at."""
    _, text = output(["objdump", "-d", "--no-show-raw-insn", program])
    found, seen, inside = [], set(), None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <([^>]+)>:$", line)
        if head:
            inside = head.group(1) if head.group(1) in names else None
            seen |= {inside} - {None}
        elif inside and ATOMIC.search(line):
            found.append(f"{inside}: {' '.join(line.split()[1:])}")
    return found, len(seen)


def makes_system_calls(program):
    status, _ = output([program, "system-calls"])
    return status != 0


def measure(runner, rounds, say):
    say("drain loop")
    program = runner.path("drain")
    figures = timed(program, rounds)
    figures["instructions"], names = counted(program)
    figures["atomic"], figures["functions"] = atomic_instructions(program, names)
    figures["system_calls"] = makes_system_calls(program)
    return figures
