#!/usr/bin/env python3
"""Runs small configurations, drawn at random, in the HPCC authors' simulator or in ConWeave's and in `tailwater ns3`, and
compares what they write byte for byte.

usage: compare.py hpcc|conweave --reference PROGRAM [--tailwater PROGRAM] [--first N] [--count N] [--only TEXT] [--keep FOLDER]

PROGRAM of the reference is `third` or `network-load-balance`, built optimised; it finds its libraries by LD_LIBRARY_PATH.
Case number N is always the same. A case that the reference does not survive is counted as such and compared as far as it got.
"""
import argparse, os, random, subprocess, sys, tempfile, time
from collections import Counter
from pathlib import Path

GBPS = 10**9


def maps(rng, rates, scale):
    """Thresholds of marking; some so low that nearly all is marked."""
    low = rng.choice([5, 20, 100, 400])
    high = low * rng.choice([1, 2, 4])
    chance = rng.choice([0.05, 0.2, 1.0])
    line = lambda key, value: f"{key} {len(rates)} " + " ".join(f"{rate} {value(rate)}" for rate in rates)
    return [
        line("KMAX_MAP", lambda rate: max(1, high * rate // scale)),
        line("KMIN_MAP", lambda rate: max(1, low * rate // scale)),
        line("PMAX_MAP", lambda rate: chance),
    ]


def flows(rng, hosts, priorities, count, most, port):
    """Messages of all sizes within a fraction of a millisecond; now and then all to one."""
    target = rng.choice(hosts) if rng.random() < 0.4 else None
    starts = sorted(round(2 + rng.random() * rng.choice([5e-6, 5e-5, 3e-4]), 9) for _ in range(count))
    lines = [str(count)]
    for start in starts:
        to = target if target is not None and rng.random() < 0.7 else rng.choice(hosts)
        source = rng.choice([host for host in hosts if host != to])
        size = int(10 ** rng.uniform(1, most))
        middle = f"{rng.choice(priorities)} {port}".strip()
        lines.append(f"{source} {to} {middle} {size} {start:.9f}")
    return lines


def leaf_spine(rng, leaves, spines, per_leaf, link, rate):
    """Hosts first, then leaves, then spines."""
    hosts = leaves * per_leaf
    links = [(host, hosts + host // per_leaf, rate, link(host)) for host in range(hosts)]
    for leaf in range(leaves):
        links += [(hosts + leaf, hosts + leaves + spine, rate, link(None)) for spine in range(spines)]
    return hosts, hosts + leaves + spines, links


def pods(rng, link, rate):
    """Three tiers: two or three pods of two leaves and two switches above them, and cores."""
    count, per_leaf, cores = rng.choice([2, 3]), rng.choice([1, 2]), rng.choice([1, 2])
    hosts = count * 2 * per_leaf
    links = [(host, hosts + host // per_leaf, rate, link(host)) for host in range(hosts)]
    above = hosts + count * 2
    for pod in range(count):
        for leaf in range(2):
            links += [(hosts + pod * 2 + leaf, above + pod * 2 + i, rate, link(None)) for i in range(2)]
        for i in range(2):
            links += [(above + pod * 2 + i, above + count * 2 + i * cores + core, rate, link(None)) for core in range(cores)]
    return hosts, above + count * 2 + 2 * cores, links


def topology(hosts, nodes, links, loss):
    switches = range(hosts, nodes)
    head = [f"{nodes} {len(switches)} {len(links)}", " ".join(map(str, switches))]
    return head + [f"{a} {b} {rate // GBPS}Gbps {delay} {loss()}" for a, b, rate, delay in links]


def common(rng, cc):
    """Keys that both simulators have."""
    window = cc == 3 or rng.random() < 0.5
    return {
        "ENABLE_QCN": rng.choice([1, 1, 1, 0]),
        "USE_DYNAMIC_PFC_THRESHOLD": 1,
        "PACKET_PAYLOAD_SIZE": rng.choice([1000, 1000, 500, 1400]),
        "CC_MODE": cc,
        "ALPHA_RESUME_INTERVAL": rng.choice([1, 55]),
        "RATE_DECREASE_INTERVAL": rng.choice([4, 10]),
        "CLAMP_TARGET_RATE": rng.choice([0, 1]),
        "RP_TIMER": rng.choice([55, 300, 900]),
        "EWMA_GAIN": rng.choice([0.00390625, 0.0625]),
        "FAST_RECOVERY_TIMES": rng.choice([1, 5]),
        "RATE_AI": rng.choice(["40Mb/s", "500Mb/s"]),
        "RATE_HAI": rng.choice(["100Mb/s", "2Gb/s"]),
        "MIN_RATE": rng.choice(["100Mb/s", "1000Mb/s"]),
        "DCTCP_RATE_AI": "1000Mb/s",
        "L2_CHUNK_SIZE": rng.choice([4000, 4000, 10000]),
        "L2_ACK_INTERVAL": rng.choice([1, 1, 1, 4000]),
        "L2_BACK_TO_ZERO": 0,
        "HAS_WIN": int(window),
        "GLOBAL_T": rng.choice([1, 1, 0]),
        "VAR_WIN": int(window and rng.random() < 0.6),
        "FAST_REACT": rng.choice([0, 1]),
        "U_TARGET": rng.choice([0.95, 0.8]),
        "MI_THRESH": rng.choice([0, 5]),
        "INT_MULTI": 1,
        "MULTI_RATE": rng.choice([0, 1]),
        "SAMPLE_FEEDBACK": rng.choice([0, 0, 1]),
        "RATE_BOUND": rng.choice([1, 1, 1, 0]),
        "TOPOLOGY_FILE": "topology.txt",
        "FLOW_FILE": "flow.txt",
        "FCT_OUTPUT_FILE": "fct.txt",
        "PFC_OUTPUT_FILE": "pfc.txt",
    }


def hpcc(rng):
    cc = rng.choice([1, 1, 3, 3, 7, 8, 10])
    rate = rng.choice([25, 100, 100]) * GBPS
    delay = lambda _: rng.choice(["1us", "1us", "0.5us", "2us"])
    if rng.random() < 0.2:
        hosts, nodes, links = pods(rng, delay, rate)
    else:
        hosts, nodes, links = leaf_spine(rng, rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([2, 3, 4]), delay, rate)
    if rng.random() < 0.3:
        place = rng.randrange(len(links))
        links[place] = links[place][:2] + (rng.choice([25, 100]) * GBPS,) + links[place][3:]
    if rng.random() < 0.1:
        links.append(rng.choice(links))
    keys = common(rng, cc)
    keys |= {
        "TRACE_FILE": "trace.txt",
        "TRACE_OUTPUT_FILE": "mix.tr",
        "SIMULATOR_STOP_TIME": 2.05,
        "ERROR_RATE_PER_LINK": rng.choice([0, 0, 0, 0.001]),
        "PINT_LOG_BASE": rng.choice([1.05, 1.01]),
        "PINT_PROB": rng.choice([1.0, 0.5]),
        "ACK_HIGH_PRIO": rng.choice([0, 1]),
        "LINK_DOWN": "0 0 0",
        "ENABLE_TRACE": 0,
        "BUFFER_SIZE": rng.choice([1, 4, 16]),
        "QLEN_MON_FILE": "qlen.txt",
        "QLEN_MON_START": 2000000000,
        "QLEN_MON_END": 2010000000,
    }
    among = [place for place, link in enumerate(links) if link[0] >= hosts]
    if rng.random() < 0.2 and len(among) > 3:
        a, b = links[rng.choice(among)][:2]
        keys["LINK_DOWN"] = f"{rng.choice([10, 40, 200])} {a} {b}"
    priorities = rng.choice([[3], [3], [1, 3], [0, 3], [2, 5]])
    text = [f"{key} {value}" for key, value in keys.items()]
    text += maps(rng, [25 * GBPS, 100 * GBPS], 100 * GBPS)
    loss = lambda: rng.choice([0] * 20 + [0.002])
    files = {
        "config.txt": text,
        "topology.txt": topology(hosts, nodes, links, loss),
        "flow.txt": flows(rng, range(hosts), priorities, rng.choice([5, 20, 60]), rng.choice([4, 5, 6]), 100),
        "trace.txt": ["0"],
    }
    return f"cc{cc}" + (" link down" if keys["LINK_DOWN"] != "0 0 0" else ""), files, ["fct.txt", "pfc.txt", "qlen.txt"]


def conweave(rng):
    balancing = rng.choice([0, 2, 2, 3, 3, 6, 6, 9, 9, 9])
    irn = rng.choice([0, 1])
    pfc = rng.choice([1, 1, 1, 0]) if not irn else rng.choice([0, 0, 0, 1])
    cc = 1 if balancing == 9 else rng.choice([1, 1, 1, 3, 7, 8])
    # The simulator takes one delay, one size of packets, and topologies by whose names it knows the bandwidth-delay product.
    delay = lambda _: "1000ns"
    three = rng.random() < 0.2
    if three:
        hosts, nodes, links = pods(rng, delay, 100 * GBPS)
    else:
        hosts, nodes, links = leaf_spine(
            rng, rng.choice([2, 3, 4]), rng.choice([1, 2, 4, 5, 6]), rng.choice([1, 2, 3, 4]), delay, 100 * GBPS
        )
    among = [place for place, link in enumerate(links) if link[0] >= hosts]
    if rng.random() < 0.2:
        place = among[-1]
        links[place] = links[place][:2] + (40 * GBPS,) + links[place][3:]
    keys = common(rng, cc)
    name = "fat_k8_100G_OS2.txt" if three else "leaf_spine_128_100G_OS2.txt"
    down = balancing == 0 and not irn and rng.random() < 0.2 and len(among) > 3
    keys |= {
        "PACKET_PAYLOAD_SIZE": 1000,
        "TOPOLOGY_FILE": name,
        "FLOW_INPUT_FILE": "in.txt",
        "CNP_OUTPUT_FILE": "cnp.txt",
        "QLEN_MON_FILE": "qlen.txt",
        "VOQ_MON_FILE": "voq.txt",
        "VOQ_MON_DETAIL_FILE": "voq_per_dst.txt",
        "UPLINK_MON_FILE": "uplink.txt",
        "CONN_MON_FILE": "conn.txt",
        "EST_ERROR_MON_FILE": "est_error.txt",
        "QLEN_MON_START": 2.0,
        "QLEN_MON_END": 2.001,
        "SW_MONITORING_INTERVAL": rng.choice([10000, 10000, 100000]),
        "FLOWGEN_START_TIME": 2.0,
        "FLOWGEN_STOP_TIME": 2.001,
        "BUFFER_SIZE": rng.choice([0, 1, 1, 9]),
        "LB_MODE": balancing,
        "ENABLE_PFC": pfc,
        "ENABLE_IRN": irn,
        "CONWEAVE_TX_EXPIRY_TIME": rng.choice([300, 300, 20]),
        "CONWEAVE_REPLY_TIMEOUT_EXTRA": rng.choice([4, 4, 1]),
        "CONWEAVE_PATH_PAUSE_TIME": rng.choice([16, 8]),
        "CONWEAVE_EXTRA_VOQ_FLUSH_TIME": rng.choice([16, 64]),
        "CONWEAVE_DEFAULT_VOQ_WAITING_TIME": rng.choice([200, 400]),
        "ERROR_RATE_PER_LINK": rng.choice([0, 0, 0, 0.001]),
        "PAUSE_TIME": rng.choice([5, 5, 2, 50]),
        "LINK_DOWN": "{} {} {}".format(rng.choice([10, 40, 200]), *links[rng.choice(among)][:2]) if down else "0 0 0",
        "LOAD": 50,
        "RANDOM_SEED": rng.choice([1, 1, 7, 123456]),
    }
    priorities = rng.choice([[3], [3], [3], [1, 3], [0, 3], [2, 5]])
    text = [f"{key} {value}" for key, value in keys.items()]
    text += maps(rng, [40 * GBPS, 100 * GBPS], 100 * GBPS)
    files = {
        "config.txt": text,
        name: topology(hosts, nodes, links, lambda: 0),
        "flow.txt": flows(rng, range(hosts), priorities, rng.choice([5, 20, 80]), rng.choice([4, 5, 6]), ""),
    }
    return f"lb{balancing} irn{irn} pfc{pfc} cc{cc}", files, ["fct.txt", "pfc.txt"]


def run(program, folder, patience):
    start = time.monotonic()
    try:
        done = subprocess.run(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience)
        return done.returncode, done, time.monotonic() - start
    except subprocess.TimeoutExpired:
        return "timeout", None, patience


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["hpcc", "conweave"])
    parser.add_argument("--reference", required=True)
    parser.add_argument("--tailwater", default="tailwater")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", default="", help="only cases whose kind has this text")
    parser.add_argument("--keep", help="where folders of cases that differ are kept")
    parser.add_argument("--patience", type=float, default=120)
    args = parser.parse_args()
    draw = {"hpcc": hpcc, "conweave": conweave}[args.kind]
    same, kinds, differ, refused, died = 0, Counter(), [], [], []
    ours = [os.path.abspath(args.tailwater)] if os.path.exists(args.tailwater) else [args.tailwater]
    for number in range(args.first, args.first + args.count):
        kind, files, outputs = draw(random.Random(f"{args.kind} {number}"))
        if args.only not in kind:
            continue
        with tempfile.TemporaryDirectory() as base:
            folders = {}
            for who in ("reference", "tailwater"):
                folders[who] = Path(base) / who
                folders[who].mkdir()
                for name, lines in files.items():
                    (folders[who] / name).write_text("\n".join(lines) + "\n")
            theirs, _, _ = run([os.path.abspath(args.reference), "config.txt"], folders["reference"], args.patience)
            own = ours + (["ns3", "-q"] if ours[0].endswith("tailwater") else []) + ["config.txt"]
            code, done, _ = run(own, folders["tailwater"], args.patience)
            if code in (1, 2):
                refused.append(number)
                print(f"{number} ({kind}): refused: {done.stderr.decode().strip()}", flush=True)
                continue
            texts = [[(folders[who] / name).read_bytes() if (folders[who] / name).exists() else b"" for name in outputs]
                     for who in folders]
            if theirs != 0:
                # What it wrote before it was gone must be the beginning of what we wrote; some of it may be cut off.
                died.append(number)
                begins = texts[1][0].startswith(texts[0][0].rpartition(b"\n")[0])
                print(f"{number} ({kind}): the reference ended with {theirs}; completions are {'the same so far' if begins else 'others'}", flush=True)
                continue
            if code == 0 and texts[0] == texts[1]:
                same += 1
                kinds[kind] += 1
                continue
            differ.append(number)
            which = [name for name, a, b in zip(outputs, *texts) if a != b]
            lines = [text[0].count(b"\n") for text in texts]
            print(f"{number} ({kind}): {', '.join(which) or code} differ; {lines[0]} and {lines[1]} flows finish", flush=True)
            if args.keep:
                subprocess.run(["cp", "-r", base, str(Path(args.keep) / f"{args.kind}-{number}")])
    for kind, count in sorted(kinds.items()):
        print(f"  {count:4} {kind}")
    print(f"{same} the same, {len(differ)} differ {differ}, {len(refused)} refused {refused}, the reference did not survive {len(died)} {died}")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
