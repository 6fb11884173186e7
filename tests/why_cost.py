#!/usr/bin/env python3
"""What asking why costs: instructions of runs with and without `measure.why`, a number that no noise touches.

    tests/why_cost.py TAILWATER [EXAMPLE/SCHEME...]

Runs the examples under `valgrind --tool=callgrind` on one thread, without a report, and prints instructions in millions without and with
`measure.why = true`, the ratio of the whole runs, which includes reading and writing files, and the ratio of the simulations alone. Exits with
1 if a whole run takes more than a fifth longer, and with 77 if callgrind is not installed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MOST = 1.20
SCHEMES = ["pfc", "bfc", "sfc", "dvl"]
RUNS = [
    *(f"{example}/{scheme}" for example in ["hot_spot", "incast", "hadoop_incast"] for scheme in SCHEMES),
    # Under dvl the slow receiver drops packets for two seconds.
    *(f"slow_receiver/{scheme}" for scheme in ["pfc", "bfc", "sfc"]),
    *(f"bcube_deadlock/{scheme}" for scheme in ["pfc", "sfc", "portfc"]),
    # What is dropped has a root, too, and every drop is looked at.
    *["lossy_link/lossy", "incast/lossy", "incast/irn", "hot_spot/lossy"],
]
# What simulates: flow control with the fabric compiled into it.
SIMULATION = "FlowControlDef>::run"


def inclusive(profile, wanted):
    """Instructions in a function and all that it calls, from a file of callgrind's."""
    names, total, callee, follows = {}, 0, None, False
    for line in profile.read_text(errors="replace").splitlines():
        name = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
        if name:
            if name[3]:
                names[name[2]] = name[3]
            callee = name[2] if name[1] else callee
        elif line.startswith("calls="):
            follows = True
        elif follows:
            follows = False
            if wanted in names.get(callee, ""):
                total += int(line.split()[1])
    return total


def instructions(program, example, scheme, why):
    """Those of a whole run, and those of its simulation."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "callgrind.out")
        settings = ["--set", f"scheme.preset={scheme}", "--set", f"measure.why={'true' if why else 'false'}"]
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", program, "run", EXAMPLES / f"{example}.toml"]
            + [*settings, "--no-report", "--quiet", "--threads", "1", "--out", f"{folder}/out"],
            capture_output=True,
            text=True,
            cwd=folder,
        )
        counted = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
        if done.returncode != 0 or not counted:
            sys.exit(f"{example} with {scheme} failed:\n{done.stderr}")
        return int(counted[1]), inclusive(profile, SIMULATION)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which("valgrind"):
        print("valgrind is not installed: nothing is measured", file=sys.stderr)
        sys.exit(77)
    program = str(Path(sys.argv[1]).resolve())
    worst = 0
    print("| run | without | with | whole run | simulation |\n|---|---|---|---|---|")
    for run in sys.argv[2:] or RUNS:
        example, _, scheme = run.partition("/")
        (without, simulated), (asked, explained) = (instructions(program, example, scheme, why) for why in (False, True))
        worst = max(worst, asked / without)
        ratios = f"{asked / without:.2f} | {explained / simulated:.2f}" if simulated else f"{asked / without:.2f} |"
        print(f"| {example}, {scheme} | {without / 1e6:.1f} | {asked / 1e6:.1f} | {ratios} |", flush=True)
    sys.exit(f"the worst is {worst:.3f}, which is more than {MOST}" if worst > MOST else 0)


main()
