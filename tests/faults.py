#!/usr/bin/env python3
"""Faults in the program itself: kills and failures at random system calls while it fills a store.

    tests/faults.py TAILWATER [KILLS] [FAILURES] [SEED] [SHORT]

`strace` kills the process before a system call chosen at random, or has the call fail with ENOSPC or EIO, once or from then on; a limit on
the length of files makes writes short and then fail. After every fault, each run that was finished before must be there, unchanged, and
each run that is there must be whole. When a store is full it is compared with one that was filled in peace, file by file, and so is the
folder of the sweep. SHORT stores are filled, read and reported while all reads are short (short.c, preloaded), which must not show in any
byte. Exits with 77 if processes cannot be traced here: nothing was tested then.
"""

import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = """\
[topology]
kind = "star"
hosts = 4
[[flow]]
src = "h1"
dst = "h0"
size = "100KB"
[[flow]]
src = "h2"
dst = "h0"
size = "100KB"
"""
SWEEP = """\
scenario = "star.toml"
schemes = ["pfc", "hpcc"]
seeds = 3
"""
RUNS = 6

# System calls that touch files, with the errors that they can have.
WRITING = ["ENOSPC", "EIO"]
READING = ["EIO"]
CALLS = {
    "openat": WRITING,
    "write": WRITING,
    "mkdir": WRITING,
    "rename": WRITING,
    "unlink": READING,
    "rmdir": READING,
    "read": READING,
    "statx": READING,
    "newfstatat": READING,
    "getdents64": READING,
    # Failing, it is what the standard library cannot bear of folders.
    "close": [],
    "fsync": WRITING,
    "lseek": READING,
    "pread64": READING,
    "readlink": READING,
}


def main():
    tailwater = Path(sys.argv[1]).resolve()
    kills, failures = (int(sys.argv[place]) if len(sys.argv) > place else 100 for place in (2, 3))
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 10
    source = Path(__file__).resolve().with_name("short.c")
    if shutil.which("strace") is None or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("SKIPPED: processes cannot be traced here (no strace, or no permission); no fault was injected", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("star.toml").write_text(SCENARIO)
        Path("sweep.toml").write_text(SWEEP)
        short = None
        if shutil.which("cc"):
            short = Path("short.so").resolve()
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", short, source], check=True)
        faults = Faults(tailwater, random.Random(seed))
        faults.test(kills, failures)
        if short is None:
            print("SKIPPED: there is no C compiler; no read was made short", file=sys.stderr)
        elif rounds > 0:
            faults.read_shortly(short, rounds)


def contents(folder):
    """Every file below a folder but what a run cost, and the digest of that."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_dir():
            continue
        content = path.read_bytes()
        if path.name == "summary.json":
            summary = json.loads(content)
            del summary["cost"]
            content = json.dumps(summary).encode()
        if path.name == "SHA256SUMS":
            content = b"\n".join(line for line in content.splitlines() if not line.endswith(b"  summary.json"))
        if path.name == "sweep.json":
            content = re.sub(rb'"(cost|folder|wall_seconds|packet_hops_per_second|peak_memory_bytes)": [^\n]*', b"", content)
        found[str(path.relative_to(folder))] = content
    return found


def runs(folder):
    """The files of the runs of a store, by run."""
    found = {}
    if Path(folder).is_dir():
        for path in Path(folder).iterdir():
            if re.fullmatch("[0-9a-f]{32}", path.name):
                found[path.name] = contents(path)
    return found


class Faults:
    def __init__(self, tailwater, random):
        self.tailwater, self.random = tailwater, random
        self.done = collections.Counter()

    def command(self, store, out):
        return [self.tailwater, "sweep", "sweep.toml", "--threads", "1", "--lease", "1s", "--quiet", "--store", store, "--out", out]

    def test(self, kills, failures):
        subprocess.run(self.command("alone", "alone-out"), check=True)
        self.alone, self.alone_out = runs("alone"), contents("alone-out")
        assert len(self.alone) == RUNS
        self.longest = max(path.stat().st_size for folder in ["alone", "alone-out"] for path in Path(folder).rglob("*"))
        self.counts = self.count()
        # Only faults that took place count.
        left = {"kill": kills, "fail": failures}
        rounds = number = 0
        before = {}
        while any(left.values()):
            number += 1
            kind = self.random.choice([kind for kind, count in left.items() if count > 0])
            took_place, before = self.fault(number, kind, before)
            left[kind] -= took_place
            # In peace, now and then, and at the end.
            if len(before) == RUNS or not any(left.values()):
                rounds += 1
                self.finish(f"after fault {number}")
                shutil.rmtree("store")
                shutil.rmtree("out")
                before = {}
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.done.items()))
        print(f"{kills} kills and {failures} failures ({what}) while {rounds} stores of {RUNS} runs were filled: no finished run was lost, the files are the same")

    def read_shortly(self, short, rounds):
        """Stores that are filled, read and reported with short reads are those of peace."""
        counted = Path("short-reads")
        said = lambda *words, **more: subprocess.run([self.tailwater, *words], check=True, timeout=300, stdout=subprocess.PIPE, **more).stdout
        shown = lambda **more: [
            said("export", "alone-out", **more),
            said("store", "verify", "alone", **more),
            said("check", "star.toml", "--json", **more),
            said("export", next(iter(sorted(Path("alone").glob("[0-9a-f]*")))), "--table", "links", **more),
        ]
        in_peace = shown()
        for number in range(rounds):
            seed = str(self.random.randint(0, 2**63))
            more = {"env": {**os.environ, "LD_PRELOAD": str(short), "SHORT_SEED": seed, "SHORT_COUNT": str(counted)}}
            where = f"reads are short by {seed}"
            # The second time everything is there and read.
            for out in ["out", "again"]:
                subprocess.run(self.command("store", out), check=True, timeout=300, **more)
                assert contents("store") == contents("alone"), f"{where}: the store differs"
                found = contents(out)
                differ = [name for name in {*found, *self.alone_out} if found.get(name) != self.alone_out.get(name)]
                assert not differ, f"{where}: {differ} differ"
            for one, other in zip(in_peace, shown(**more)):
                assert one == other, f"{where}: printed is\n{other[:2000]}\nand not\n{one[:2000]}"
            for folder in ["store", "out", "again"]:
                shutil.rmtree(folder)
        cut = sum(int(line) for line in counted.read_text().splitlines())
        assert cut > 100 * rounds, f"only {cut} reads were short"
        print(f"{cut} short reads while {rounds} stores of {RUNS} runs were filled and read: the files and what is printed are the same")

    def count(self):
        """How often a thread makes each system call, at most."""
        subprocess.run(["strace", "-f", "-qq", "-o", "trace", *self.command("traced", "traced-out")], check=True)
        counts = collections.Counter()
        for line in Path("trace").read_text(errors="replace").splitlines():
            found = re.match(r"(\d+) +(\w+)\(", line)
            if found:
                counts[found.groups()] += 1
        most = collections.Counter()
        for (_, call), count in counts.items():
            most[call] = max(most[call], count)
        return {call: most[call] for call in CALLS if most[call] > 0}

    def fault(self, number, kind, before):
        call = self.random.choice(list(self.counts))
        when = self.random.randint(1, self.counts[call])
        command, limit = self.command("store", "out"), None
        if kind == "kill":
            what = f"{call}:signal=KILL:when={when}"
        elif self.random.random() < 0.25:
            limit = self.random.randint(1, self.longest)
            what = f"files of {limit} bytes"
        else:
            while not CALLS[call]:
                call = self.random.choice(list(self.counts))
            when = self.random.randint(1, self.counts[call])
            error = self.random.choice(CALLS[call])
            what = f"{call}:error={error}:when={when}{self.random.choice(['', '+'])}"
        if limit is None:
            command = ["strace", "-f", "-qq", "-o", "injected", "-e", f"trace={call}", "-e", f"inject={what}", *command]

        def short():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        other = None
        if self.random.random() < 0.25:
            other = subprocess.Popen(self.command("store", "other-out"), stderr=subprocess.PIPE)
        process = subprocess.run(command, stderr=subprocess.PIPE, timeout=120, preexec_fn=short if limit else None)
        said, status = process.stderr.decode(errors="replace"), process.returncode
        where = f"fault {number}, {what}: status {status}\n{said}"
        if other:
            words = other.communicate(timeout=120)[1].decode(errors="replace")
            assert other.returncode == 0, f"{where}\na process beside it failed: {words}"
        hurt = "error while loading" in said or status == 127
        assert status in (0, 1, -9) or hurt, where
        assert "panicked" not in said, where
        # Where every write fails, that of the message does, too.
        mute = what.startswith("write:") and what.endswith("+")
        assert status != 1 or mute or "error: " in said, f"{where}\nit failed without a word"
        if limit:
            took_place = status == 1
        elif kind == "kill":
            took_place = status == -9
        else:
            # Not while the program was being loaded.
            took_place = not hurt and "(INJECTED)" in Path("injected").read_text(errors="replace")
        if took_place:
            self.done["killed" if kind == "kill" else "cut off" if limit else "refused" if status == 1 else "made good"] += 1
        after = runs("store")
        for run, files in before.items():
            assert run in after, f"{where}\nthe finished run {run} is lost"
            assert after[run] == files, f"{where}\nthe finished run {run} has changed"
        for run, files in after.items():
            assert files == self.alone[run], f"{where}\nthe run {run} is not whole"
        if Path("out/sweep.json").exists():
            found = {name: content for name, content in contents("out").items() if not name.split("/")[-1].startswith(".")}
            assert set(found) <= set(self.alone_out), where
        return took_place, after

    def finish(self, where):
        """In peace everything is made good, and nothing is left over."""
        subprocess.run(self.command("store", "out"), check=True, timeout=120)
        assert contents("store") == contents("alone"), f"{where}: the store differs: {set(contents('store')) ^ set(contents('alone'))}"
        found = contents("out")
        assert set(found) == set(self.alone_out), f"{where}: {set(found) ^ set(self.alone_out)}"
        differ = [name for name in found if found[name] != self.alone_out[name]]
        assert not differ, f"{where}: {differ} differ"
        subprocess.run([self.tailwater, "store", "verify", "store"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree("other-out", ignore_errors=True)


main()
