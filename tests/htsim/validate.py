#!/usr/bin/env python3
"""The validation suites of the Ultra Ethernet group's simulator, run through `tailwater htsim`.

    python3 tests/htsim/validate.py FOLDER TAILWATER [--theirs HTSIM_UEC] [--nodes 128,1024] [--suite sender ...]

FOLDER is a copy of github.com/ultraethernet/uet-htsim. Every experiment of its suites (validate_*.txt in htsim/sim/datacenter) is one row: the
bound on the last completion that its file states, the last completion here, and there if a build of it is given; with median and 99th
percentile of both. An experiment passes if every connection finishes and the last one within the bound.

Experiments with 1024 nodes run at 128, too: with that folder's permutation of 128 nodes, and with its topologies cut down to as many.
Behind the rows there is one for each suite: how many pass here and there, and the ratios of the medians, of the 99th percentiles and of the last
completions, from the least to the largest. What fails is listed again at the end with the bound it misses. Exit status 1 if anything fails that passes there, or that is not known
to fail there because no build was given.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

SUITES = {
    "sender": "validate_uec_sender.txt",
    "receiver": "validate_uec_rcv.txt",
    "both": "validate_uec_both.txt",
    "reuse": "validate_uec_connreuse.txt",
    "sleek": "validate_uec_sender_sleek.txt",
    "lb-sender": "validate_load_balancing_snd.txt",
    "lb-receiver": "validate_load_balancing_rcv.txt",
    "lb-failed-sender": "validate_load_balancing_failed_snd.txt",
    "lb-failed-receiver": "validate_load_balancing_failed_rcv.txt",
    "lb-sleek": "validate_load_balancing_snd_sleek.txt",
}
USUAL = ["sender", "receiver", "both", "reuse", "lb-sender", "lb-receiver", "lb-failed-sender", "lb-failed-receiver"]
# What stands for a matrix of 1024 nodes at 128.
SMALLER = {"perm_1024n_1024c_0u_2000000b.cm": "perm_128n_128c_2MB.cm"}
FINISHED = re.compile(r"^Flow (\S+) flowId (\d+) .*finished at (\S+) total messages (\d+) total packets (\d+)")


class Experiment:
    def __init__(self, suite, matrix):
        self.suite, self.matrix = suite, matrix
        self.name, self.params, self.bound, self.bounds = "", [], None, {}

    def topology(self):
        return self.params[self.params.index("-topo") + 1] if "-topo" in self.params else None


def read(folder, suite):
    """The experiments of a suite, as that folder's validate.py reads them."""
    found = []
    with open(os.path.join(folder, SUITES[suite])) as file:
        for line in file:
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if not line.startswith("!"):
                found.append(Experiment(suite, words[0]))
            elif words[0] == "!Experiment":
                found[-1].name = " ".join(words[1:])
            elif words[0] == "!Param":
                found[-1].params += words[1:]
            elif words[0] == "!tailFCT":
                found[-1].bound = float(words[1])
            elif words[0] == "!FCT":
                found[-1].bounds[words[1]] = float(words[2])
    return found


def head(path, word):
    with open(path) as file:
        for line in file:
            words = line.split()
            if words[:1] == [word]:
                return int(words[1])
    return 0


def shrunk(folder, topology, nodes, scratch):
    """A leaf-spine of that folder with so many nodes, and the same oversubscription."""
    text = open(os.path.join(folder, topology)).read()
    leaf = int(re.search(r"Tier 0.*?Radix_Down (\d+)", text, re.S).group(1))
    text = re.sub(r"(Nodes|Podsize) \d+", rf"\1 {nodes}", text)
    top = text.index("Tier 1")
    text = text[:top] + re.sub(r"Radix_Down \d+", f"Radix_Down {nodes // leaf}", text[top:])
    path = os.path.join(scratch, f"{nodes}-{os.path.basename(topology)}")
    with open(path, "w") as file:
        file.write(text)
    return path


def sized(folder, experiment, nodes, scratch):
    """The matrix and the options of an experiment at so many nodes, or nothing if it has none of that size."""
    own = head(os.path.join(folder, experiment.matrix), "Nodes")
    if own <= 128:
        return (experiment.matrix, experiment.params) if nodes == 128 else None
    if own == nodes:
        return experiment.matrix, experiment.params
    other = SMALLER.get(os.path.basename(experiment.matrix))
    if nodes != 128 or other is None:
        return None
    params = list(experiment.params)
    if experiment.topology():
        params[params.index("-topo") + 1] = shrunk(folder, experiment.topology(), nodes, scratch)
    return os.path.join(os.path.dirname(experiment.matrix), other), params


def run(command, folder, limit):
    """What a command line prints of its flows: completion times in the order in which they end, by flow, and the messages that ended."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"takes more than {limit} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]}
    flows = [match.groups() for match in map(FINISHED.match, done.stdout.splitlines()) if match]
    totals = [line for line in done.stdout.splitlines() if line.startswith("New:")]
    return {
        "flows": [(name, float(at)) for name, _, at, _, _ in flows],
        "messages": sum(int(messages) for *_, messages, _ in flows),
        "totals": totals[-1] if totals else "",
        "seconds": time.monotonic() - begin,
    }


def quantile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(share * len(times)))]


def judge(experiment, connections, result):
    """What is wrong with a result, if anything."""
    if "error" in result:
        return result["error"]
    if result["messages"] != connections:
        return f"{result['messages']} of {connections} connections finish"
    last = max(at for _, at in result["flows"])
    if experiment.bound and last > experiment.bound:
        return f"last at {last:g} us, bound {experiment.bound:g}"
    for name, at in result["flows"]:
        if at > experiment.bounds.get(name, at):
            return f"{name} at {at:g} us, bound {experiment.bounds[name]:g}"
    return None


def numbers(result):
    if "error" in result or not result["flows"]:
        return ["-", "-", "-"]
    times = [at for _, at in result["flows"]]
    return [f"{value:g}" for value in (quantile(times, 0.5), quantile(times, 0.99), max(times))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a copy of uet-htsim")
    parser.add_argument("tailwater", help="the program")
    parser.add_argument("--theirs", metavar="PROGRAM", help="a build of htsim_uec, for what it finds itself")
    parser.add_argument("--nodes", default="128,1024", help="sizes: 128, 1024 or both")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only these [default: all but the sleek ones]")
    parser.add_argument("--only", default="", help="only experiments whose name has this text")
    parser.add_argument("--jobs", type=int, default=1, help="so many runs at once")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that a run may take")
    parser.add_argument("--seed", type=int, help="-seed for both")
    parser.add_argument("--kept", metavar="FILE", help="keep their results here, and take them from here another time")
    parser.add_argument("--markdown", action="store_true", help="rows as a table for the book")
    how = parser.parse_args()
    folder = os.path.join(os.path.abspath(how.folder), "htsim/sim/datacenter")
    ours, theirs = os.path.abspath(how.tailwater), how.theirs and os.path.abspath(how.theirs)
    kept = json.load(open(how.kept)) if how.kept and os.path.exists(how.kept) else {}
    seed = ["-seed", str(how.seed)] if how.seed is not None else []

    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(how.jobs) as pool:
        plan = []
        for suite in how.suite or USUAL:
            for experiment in read(folder, suite):
                for nodes in map(int, how.nodes.split(",")):
                    found = sized(folder, experiment, nodes, scratch)
                    if found and how.only in experiment.name:
                        plan.append((experiment, nodes, *found))

        def one(entry):
            experiment, nodes, matrix, params = entry
            line = ["-tm", matrix, *params, *seed]
            key = " ".join(os.path.basename(word) for word in line)
            log = ["-o", os.path.join(scratch, f"{abs(hash(key))}.dat")]
            other = kept.get(key)
            if other is None and theirs:
                other = kept[key] = run([theirs, *line, *log], folder, how.limit)
                if how.kept:
                    with open(how.kept + ".new", "w") as file:
                        json.dump(kept, file)
                    os.replace(how.kept + ".new", how.kept)
            connections = head(os.path.join(folder, matrix), "Connections")
            return run([ours, "htsim", *line], folder, how.limit), other, connections

        titles = ["suite", "nodes", "experiment", "bound", "p50", "p99", "last", "theirs p50", "p99", "last", "ratio", "verdict"]
        form = (lambda row: "| " + " | ".join(row) + " |") if how.markdown else "\t".join
        print(form(titles))
        if how.markdown:
            print("|" + "---|" * len(titles))
        failed, behind, counts, suites = [], [], [0, 0], {}
        for (experiment, nodes, _, _), (result, other, connections) in zip(plan, pool.map(one, plan)):
            wrong = judge(experiment, connections, result)
            reference = judge(experiment, connections, other) if other else None
            mine, their = numbers(result), numbers(other) if other else ["-"] * 3
            both = mine[2] != "-" and their[2] != "-"
            ratio = f"{float(mine[2]) / float(their[2]):.3f}" if both else "-"
            verdict = "fail" if wrong else "pass"
            passes = (wrong is None, other is not None and reference is None)
            ratios = [float(a) / float(b) if both else None for a, b in zip(mine, their)]
            suites.setdefault((experiment.suite, nodes), []).append((passes, ratios))
            counts[wrong is None] += 1
            if wrong:
                there = f"; there: {reference or 'passes'}" if other else ""
                failed.append(f"{experiment.suite} {nodes}: {experiment.name}: {wrong}{there}")
                if not (other and reference):
                    behind.append(failed[-1])
            if other and reference:
                verdict += f" (there: fail)"
            bound = f"{experiment.bound:g}" if experiment.bound else "-"
            print(form([experiment.suite, str(nodes), experiment.name, bound, *mine, *their, ratio, verdict]), flush=True)
    print()
    titles = ["suite", "nodes", "experiments", "pass", "pass there", "p50 : theirs", "p99 : theirs", "last : theirs"]
    print(form(titles))
    if how.markdown:
        print("|" + "---|" * len(titles))
    for (suite, nodes), rows in suites.items():
        of = lambda place: [ratios[place] for _, ratios in rows if ratios[place] is not None]
        spread = lambda found: f"{min(found):.3f} to {max(found):.3f}" if found else "-"
        here, there = (str(sum(passes[side] for passes, _ in rows)) for side in (0, 1))
        print(form([suite, str(nodes), str(len(rows)), here, there, *(spread(of(place)) for place in range(3))]))
    print(f"\n{counts[1]} pass, {counts[0]} fail", flush=True)
    print("".join(f"  {line}\n" for line in failed), end="")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
