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
CONFIG = """\
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
TRACE_FILE trace.txt
TRACE_OUTPUT_FILE mix.tr
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
SIMULATOR_STOP_TIME 2.5
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 20Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
HAS_WIN 1
VAR_WIN 1
GLOBAL_T 1
RATE_BOUND 1
ACK_HIGH_PRIO 0
ENABLE_TRACE 0
KMAX_MAP 1 100000000000 1600
KMIN_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
BUFFER_SIZE 12
QLEN_MON_FILE qlen.txt
QLEN_MON_START 3000000000
QLEN_MON_END 3000000000
"""
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
        Path(folder, "config.txt").write_text(CONFIG)
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
