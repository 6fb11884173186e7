#!/usr/bin/env python3
"""Instructions per packet-hop, by preset: a number that no noise touches.

    tests/instructions.py TAILWATER [PRESET...]

Runs 64 hosts (4 leaves, 16 spines, 100 Gb/s, 1 us) with FB_Hadoop at 50 % under `valgrind --tool=callgrind`, once for 50 us and once for
150 us, and prints the slope between the two: what starting, reading and writing take does not count. The preset `ns3` stands for the ns-3
front end on the reference run with 64 hosts and DCQCN with a window (crates/run/tests/reference/clos64), with the first 300 and the first 900
of its flows. Exits with 77 if callgrind is not installed.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = """\
[topology]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 16
spines = 16
[scheme]
preset = "{preset}"
[[load]]
sizes = "fb-hadoop"
load = 0.5
duration = "{duration}"
"""
# The sample's keys, with DCQCN, nothing lost and no monitor.
CHANGES = {
    "SIMULATOR_STOP_TIME": "2.5",
    "CC_MODE": "1",
    "RATE_AI": "20Mb/s",
    "RATE_HAI": "200Mb/s",
    "ERROR_RATE_PER_LINK": "0",
    "LINK_DOWN": "0 0 0",
    "QLEN_MON_START": "3000000000",
    "QLEN_MON_END": "3000000000",
}
SAMPLE = Path(__file__).resolve().parent / "samples/ns3/config.txt"
REFERENCE = Path(__file__).resolve().parent.parent / "crates/run/tests/reference/clos64"
FLOWS = (300, 900)
PRESETS = ["pfc", "dcqcn+win", "hpcc", "bfc", "ns3"]
SHORT, LONG = "50us", "150us"


def instructions(command, folder):
    """How many the program takes, and what it prints."""
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out"]
    done = subprocess.run([*callgrind, *command], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1)), done.stdout


def run(program, preset, duration):
    """Instructions and packet-hops of a run."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.toml"
        scenario.write_text(SCENARIO.format(preset=preset, duration=duration))
        out = f"{folder}/out"
        command = [program, "run", str(scenario), "--no-report", "--quiet", "--threads", "1", "--out", out]
        count, _ = instructions(command, folder)
        return count, json.loads(Path(out, "summary.json").read_text())["packet_hops"]


def run_ns3(program, flows):
    """The same of the reference run with its first flows."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [line.split(maxsplit=1) for line in SAMPLE.read_text().splitlines()]
        Path(folder, "config.txt").write_text("".join(f"{key} {CHANGES.get(key, value)}\n" for key, value in lines))
        Path(folder, "trace.txt").write_text("0\n")
        shutil.copy(REFERENCE / "topology.txt", folder)
        lines = (REFERENCE / "flow.txt").read_text().splitlines()
        Path(folder, "flow.txt").write_text("\n".join([str(flows), *lines[1 : flows + 1]]) + "\n")
        count, printed = instructions([program, "ns3", "config.txt"], folder)
        hops = re.search(r"(\d+) packet-hops", printed)
        if not hops:
            sys.exit(f"no number of packet-hops in what `tailwater ns3` prints:\n{printed}")
        return count, int(hops.group(1))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which("valgrind"):
        print("valgrind is not installed: nothing is measured", file=sys.stderr)
        sys.exit(77)
    program = str(Path(sys.argv[1]).resolve())
    print("| preset | packet-hops | instructions a packet-hop |\n|---|---|---|")
    for preset in sys.argv[2:] or PRESETS:
        if preset == "ns3":
            (some, few), (more, many) = (run_ns3(program, flows) for flows in FLOWS)
        else:
            (some, few), (more, many) = (run(program, preset, duration) for duration in (SHORT, LONG))
        print(f"| {preset} | {many - few} | {(more - some) / (many - few):.0f} |", flush=True)


main()
