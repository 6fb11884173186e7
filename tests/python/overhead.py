"""What Python costs: a run of about a second by the command line and by the package, turn by turn; the least of each counts.

usage: overhead.py TAILWATER [TIMES]

Both must have been built with the same profile. The command line's time has the start of a process in it, Python's has not: it is
compared by what simulating took (summary.json's cost), and by everything from the scenario to the folder of results.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tailwater

SCENARIO = """
[topology]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 16
spines = 8
[scheme]
preset = "dcqcn+win"
[[load]]
sizes = "websearch"
load = 0.5
duration = "4ms"
"""


def processor():
    """Seconds of the processor, of this process and of its children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main():
    program, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    whole, inner, busy = ({"cli": [], "python": []} for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "scenario.toml", Path(folder) / "out"
        path.write_text(SCENARIO)
        for _ in range(times):
            for who in whole:
                shutil.rmtree(out, ignore_errors=True)
                start, used = time.perf_counter(), processor()
                if who == "cli":
                    subprocess.run([program, "run", path, "--threads", "1", "--out", out, "--no-report", "-q"], check=True)
                else:
                    tailwater.run(path, threads=1).write(out, report=False)
                whole[who].append(time.perf_counter() - start)
                busy[who].append(processor() - used)
                inner[who].append(json.loads((out / "summary.json").read_text())["cost"]["wall_seconds"])
    for what, seconds in [("simulating", inner), ("in all", whole), ("processor", busy)]:
        cli, python = min(seconds["cli"]), min(seconds["python"])
        print(f"{what:10}  command line {cli:.3f} s, Python {python:.3f} s: {python / cli - 1:+.2%}")


main()
