#!/usr/bin/env python3
"""Sweeps by several machines over one store, each of which sees it as an NFS client does.

    tests/nfs/run.py TAILWATER [ROUNDS] [SEED]

Every worker has a mount of its own (client.c, through FUSE) that caches names and attributes, keeps what is written until a file is closed,
and loses replies; and a process namespace of its own, so that nobody can see whether another still lives. Rounds differ in how long is
cached, how many replies are lost, and whether workers are killed. After each the store has every run, the same bytes as one that was
filled in peace, and no claim; without kills and lost replies each run was done once. Exits with 77 if nothing can be mounted here, or
there is no compiler: nothing was tested then.
"""

import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCENARIO = """\
[topology]
kind = "star"
hosts = 4
[[flow]]
src = "h1"
dst = "h0"
size = "1MB"
[[flow]]
src = "h2"
dst = "h0"
size = "1MB"
"""
SWEEP = """\
scenario = "star.toml"
schemes = ["pfc", "hpcc"]
seeds = 15
"""
RUNS = 30
WORKERS = 3
LEASE = 2
# Of a round, far longer than it takes.
PATIENCE = 180
# A worker that fails with a message is started again, as people would, so that the rest is seen, too.
STARTS = 60


def skip(why):
    print(f"SKIPPED: {why}; no sweep was done over such mounts", file=sys.stderr)
    sys.exit(77)


def main():
    tailwater = Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if os.environ.get("NFS_INSIDE") is None:
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if shutil.which("unshare") is None or subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            skip("there are no namespaces of mounts and processes here")
        # Whatever happens, mounts and processes end with this one.
        sys.exit(subprocess.run([*alone, sys.executable, __file__, *sys.argv[1:]], env={**os.environ, "NFS_INSIDE": "1"}).returncode)
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        skip("there is no /dev/fuse here")
    with tempfile.TemporaryDirectory() as folder:
        client = Path(folder, "client")
        build(client)
        os.chdir(folder)
        Sweeps(tailwater, client, random.Random(seed)).test(rounds)


def build(client):
    if shutil.which("gcc") is None or shutil.which("pkg-config") is None:
        skip("there is no C compiler here (gcc, pkg-config)")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if flags.returncode != 0:
        skip("there is no libfuse here (Debian: libfuse3-dev)")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-O1", "-o", client, HERE / "client.c", *flags.stdout.split()], check=True)


def contents(folder):
    """Every file of the runs of a store, but what a run cost, and the digest of that."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder)
        if path.is_dir() or not re.fullmatch("[0-9a-f]{32}", name.parts[0]):
            continue
        content = path.read_bytes()
        if path.name == "summary.json":
            summary = json.loads(content)
            del summary["cost"]
            content = json.dumps(summary).encode()
        if path.name == "SHA256SUMS":
            content = b"\n".join(line for line in content.splitlines() if not line.endswith(b"  summary.json"))
        found[str(name)] = content
    return found


class Worker:
    """A machine: a mount, and a process that is started until its sweep is complete."""

    def __init__(self, sweeps, number, cache, loss):
        self.sweeps, self.number = sweeps, number
        self.mount = Path(f"machine{number}")
        self.mount.mkdir(exist_ok=True)
        seed = str(sweeps.random.randrange(1 << 32))
        self.client = subprocess.Popen([sweeps.client, "server", self.mount, str(cache), str(loss), seed], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not os.path.ismount(self.mount):
            if self.client.poll() is not None or time.monotonic() > end:
                skip("FUSE cannot be mounted here")
            time.sleep(0.02)
        self.starts = self.failures = 0
        self.done = collections.Counter()
        self.complete = False
        self.start()

    def start(self):
        self.starts += 1
        self.said = open(f"said{self.number}", "w+b")
        # A process namespace of its own: to the others it is a machine elsewhere.
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *self.sweeps.command(self.mount / "store", f"out{self.number}")]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.hear()
        self.start()

    def hear(self):
        """Counts the runs that it did."""
        self.said.seek(0)
        words = self.said.read().decode(errors="replace")
        self.said.close()
        for line in words.splitlines():
            try:
                step = json.loads(line)
            except ValueError:
                continue
            if step.get("step") == "done":
                self.done[step["key"]] += 1
        return words

    def look(self):
        if self.complete or self.process.poll() is None:
            return
        status, words = self.process.returncode, self.hear()
        if status == 0:
            self.complete = True
            return
        assert status == 1 and '"step":"problem"' in words and "panicked" not in words, f"worker {self.number}: status {status}\n{words[-3000:]}"
        self.failures += 1
        self.words = words
        assert self.starts < STARTS, f"worker {self.number} fails again and again\n{words[-3000:]}"
        self.start()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        subprocess.run(["umount", "-l", self.mount], check=False)
        self.client.terminate()
        self.losses = int(self.client.communicate(timeout=20)[0] or 0)


class Sweeps:
    def __init__(self, tailwater, client, random):
        self.tailwater, self.client, self.random = tailwater, client, random
        Path("star.toml").write_text(SCENARIO)
        Path("sweep.toml").write_text(SWEEP)

    def command(self, store, out):
        lease = ["--lease", f"{LEASE}s", "--progress", "json"]
        return [self.tailwater, "sweep", "sweep.toml", "--threads", "1", *lease, "--store", store, "--out", out]

    def test(self, rounds):
        subprocess.run(self.command("alone", "alone-out"), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.alone = contents("alone")
        assert len({name.split("/")[0] for name in self.alone}) == RUNS
        total = collections.Counter()
        for number in range(rounds):
            # The first is calm; then replies are lost, workers are killed, or both.
            lossy, deadly = number % 4 in (1, 3), number % 4 in (2, 3)
            cache = self.random.choice([0.2, 1, 3, 10])
            loss = self.random.choice([0.01, 0.05, 0.2]) if lossy else 0
            total += self.round(number, cache, loss, self.random.randint(3, 8) if deadly else 0)
        what = ", ".join(f"{count} {name}" for name, count in sorted(total.items()))
        print(f"{rounds} stores of {RUNS} runs filled by {WORKERS} machines ({what}): every run is there once, right, and no claim is left")

    def round(self, number, cache, loss, kills):
        where = f"round {number}, {cache} s cached, {loss:.0%} of replies lost, {kills} kills"
        begin = time.monotonic()
        shutil.rmtree("server", ignore_errors=True)
        Path("server").mkdir()
        workers = [Worker(self, number, cache, loss) for number in range(WORKERS)]
        killed = 0
        try:
            next_kill = begin + self.random.uniform(0.1, 0.6)
            while not all(worker.complete for worker in workers):
                for worker in workers:
                    worker.look()
                living = [worker for worker in workers if not worker.complete]
                if killed < kills and living and time.monotonic() > next_kill:
                    self.random.choice(living).kill()
                    killed += 1
                    next_kill = time.monotonic() + self.random.uniform(0.1, 0.6)
                assert time.monotonic() - begin < PATIENCE, f"{where}: waited {PATIENCE} s in vain\n{os.listdir('server/store')}"
                time.sleep(0.02)
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from None
        finally:
            for worker in workers:
                worker.end()
        done = sum((worker.done for worker in workers), collections.Counter())
        twice = sum(count - 1 for count in done.values())
        failures = sum(worker.failures for worker in workers)
        losses = sum(worker.losses for worker in workers)
        print(f"{where}: {time.monotonic() - begin:.1f} s, {losses} replies lost, {twice} runs done twice, {failures} ends with a message", flush=True)
        # Nobody was silent for a lease, and no reply was lost.
        assert loss or killed or twice == 0, f"{where}: {done}"
        assert failures == 0, f"{where}: {[worker.words for worker in workers if worker.failures]}"
        found = contents("server/store")
        assert set(found) == set(self.alone), f"{where}: {set(found) ^ set(self.alone)}"
        differ = [name for name in found if found[name] != self.alone[name]]
        assert not differ, f"{where}: {differ} differ"
        subprocess.run([self.tailwater, "store", "verify", "server/store"], check=True, stdout=subprocess.DEVNULL)
        # What the dead have left is cleared away by whoever comes next.
        subprocess.run(self.command("server/store", "out"), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        claims = Path("server/store/claims")
        assert not claims.exists(), f"{where}: claims are left: {os.listdir(claims)}"
        return collections.Counter({"kills": killed, "lost replies": losses, "runs done twice": twice, "ends with a message": failures})


if __name__ == "__main__":
    main()
