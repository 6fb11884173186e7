"""Comparisons, the ledger, ns-3's files and sweeps: what the command line does, from Python."""

import csv
import json
import logging
import os
import random
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import tailwater
from conftest import ROOT, SMALL, contents, same


def test_a_comparison_is_the_command_lines(cli):
    Path("small.toml").write_text(tailwater.dumps(SMALL))
    arguments = ["--schemes", "dcqcn,hpcc", "--seeds", "2", "--vary", "switch.buffer=1MB,2MB"]
    assert cli("compare", "small.toml", *arguments, "--store", "cli", "--out", "table", "-q") is None
    told = []
    comparison = tailwater.compare(
        "small.toml",
        ["dcqcn", "hpcc"],
        seeds=2,
        vary={"switch.buffer": ["1MB", "2MB"]},
        store="python",
        progress=lambda *three: told.append(three),
    )
    same("cli", "python")
    assert (len(comparison.runs), comparison.ran, told[-1]) == (8, 8, (8, 1.0, 8))
    rows = list(csv.DictReader(Path("table/table.csv").open()))
    table = comparison.table.to_pyarrow().to_pylist()
    assert len(rows) == len(table) == 4
    for row, mine in zip(rows, table):
        for key, text in row.items():
            value = mine[key]
            assert (value is None and text == "") or str(value) == text or float(text) == pytest.approx(value), key
    again = tailwater.compare(SMALL, "dcqcn,hpcc", seeds=2, vary=["switch.buffer=1MB,2MB"], store="python")
    assert again.ran == 0
    cell = again.runs[0]
    assert cell.labels == {"scheme": "dcqcn", "switch.buffer": "1MB"} and cell.seed == 1
    assert cell.open().summary["seed"] == 1
    assert "slowdown" in str(list(again.figures())) and "hpcc" in again._repr_html_() and "hpcc" in str(again)


def test_seeds_may_be_how_many_or_which():
    runs = lambda seeds: [cell.seed for cell in tailwater.compare(SMALL, seeds=seeds, store="store").runs]  # noqa: E731
    assert runs(2) == [1, 2] and runs([5, 9]) == [5, 9] and runs([4]) == [4] and runs(None) == [1]
    with pytest.raises(tailwater.Problem, match="there twice"):
        runs([5, 5])
    with pytest.raises(tailwater.Problem, match="no preset"):
        tailwater.compare(SMALL, ["hpc"])


def test_a_verdict_is_the_command_lines(cli):
    assert cli("reproduce", "dvl/reaction", "--seeds", "1", "--out", "cli", "-q") is None
    verdict = tailwater.reproduce("dvl/reaction", seeds=1, out="python")
    same("cli", "python")
    assert verdict.id == "dvl/reaction" and verdict.json == json.loads(Path("cli/dvl/reaction/verdict.json").read_text())
    assert verdict.expectations and "the paper says" in verdict._repr_html_() and verdict.figures()
    assert verdict.holds == (verdict.verdict == "holds")
    with pytest.raises(tailwater.Problem, match="name one: "):
        tailwater.reproduce("dvl")
    with pytest.raises(tailwater.Problem, match="did you mean"):
        tailwater.reproduce("bfc/fig5")


def test_ns3s_files_give_what_the_command_line_gives(cli):
    source = (ROOT / "crates/tailwater/tests/all/cli.rs").read_text()
    text = lambda name: source.split(f"const {name}: &str = \"\\\n")[1].split('";')[0]  # noqa: E731
    for name, constant in [("config.txt", "CONFIG"), ("topology.txt", "TOPOLOGY"), ("flow.txt", "FLOWS")]:
        Path(name).write_text(text(constant))
    Path("trace.txt").write_text("0\n")
    assert cli("ns3", "config.txt", "-q") is None
    expected = {name: Path(name).read_bytes() for name in ["fct.txt", "pfc.txt"]}
    [Path(name).unlink() for name in expected]
    done = tailwater.ns3("config.txt")
    assert {str(path): path.read_bytes() for path in done.files} == expected and expected["fct.txt"]
    assert "flows" in done.summary
    with pytest.raises(tailwater.Problem, match="cannot be read"):
        tailwater.ns3("nowhere.txt")


SWEEP = {
    "schemes": ["dcqcn", "hpcc", "pfc"],
    "seeds": 4,
    "grid": {"switch.buffer": ["1MB", "4MB"]},
    "scenario": SMALL,
}


@pytest.fixture
def local():
    """The store that one process makes."""
    done = tailwater.sweep(SWEEP, store="local")
    assert done.ran == len(done.runs) == 24
    return "local"


def test_a_sweep_is_a_file_a_text_or_a_dictionary(cli, local):
    Path("sweep.toml").write_text(tailwater.dumps(SWEEP))
    again = tailwater.sweep("sweep.toml", store=local)
    assert (again.ran, len(again.table)) == (0, 6)
    with pytest.raises(tailwater.Problem) as caught:
        tailwater.sweep({**SWEEP, "sead": 1})
    assert 'unknown key "sead"' in str(caught.value) and caught.value.line


@pytest.mark.parametrize("shared", [True, False])
def test_processes_fill_the_same_store(local, shared):
    with ProcessPoolExecutor(2) as executor:
        done = tailwater.sweep(SWEEP, executor, store="pool", shared=shared)
    assert (done.ran, len(done.runs)) == (24, 24)
    same(local, "pool")
    with ThreadPoolExecutor(2) as executor:
        assert tailwater.sweep(SWEEP, executor, store="pool").ran == 0


def test_a_problem_of_a_run_is_that_of_the_planner(local):
    bad = {**SWEEP, "set": ["nic.ack_every=0"]}
    with pytest.raises(tailwater.Problem) as here:
        tailwater.sweep(bad, store="bad")
    with ProcessPoolExecutor(1) as executor, pytest.raises(tailwater.Problem) as there:
        tailwater.sweep(bad, executor, store="bad")
    # Which of them was first, they may say differently.
    assert str(there.value).split(" (in")[0] == str(here.value).split(" (in")[0]
    assert there.value.help == here.value.help


def test_a_run_that_comes_out_under_another_name_is_refused():
    from tailwater import _tailwater
    from tailwater._sweep import Job, work

    plan = _tailwater.Plan.sweep("sweep", tailwater.dumps(SWEEP), "")
    labels, seed, sets, digest = plan.cells[0]
    job = Job(plan.source, labels, seed, [*sets, "seed=9"], digest, "store", "", False, 1)
    with pytest.raises(tailwater.Problem, match="where it was planned"):
        work(job)
    with pytest.raises(tailwater.Problem, match="not the run that was sent back"):
        _tailwater.keep({"scenario.toml": b"x"}, digest, "store")


@pytest.fixture
def cluster():
    """A scheduler of Dask's with two worker processes, which are started anew when they die."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    # A task is not to blame for the deaths of its workers here.
    settings = {
        "distributed.scheduler.allowed-failures": 100,
    }
    with dask.config.set(settings):
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster:
            with distributed.Client(cluster) as client:
                yield client


@pytest.mark.parametrize("shared", [True, False])
def test_dask_fills_the_same_store(local, cluster, shared):
    done = tailwater.sweep(SWEEP, cluster.get_executor(), store="dask", shared=shared)
    assert (done.ran, len(done.runs)) == (24, 24)
    same(local, "dask")


@pytest.mark.parametrize("shared", [True, False])
def test_workers_that_are_killed_lose_nothing(cluster, shared):
    """Twenty times a worker dies, in the middle of whatever it does."""
    long = {**SMALL, "load": [{"sizes": "websearch", "load": 0.4, "duration": "1ms"}]}
    spec = {**SWEEP, "scenario": long, "seeds": 7 if shared else 4}
    luck, over, killed = random.Random(1), threading.Event(), []

    def kill():
        end = time.monotonic() + 600
        while len(killed) < 20 and time.monotonic() < end and not over.wait(luck.uniform(0.05, 0.6)):
            try:
                victim = luck.choice(list(cluster.cluster.workers.values())).process.pid
                os.kill(victim, signal.SIGKILL)
            except (AttributeError, OSError, TypeError):  # it is not there for a moment
                continue
            killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        done = tailwater.sweep(spec, cluster.get_executor(), store="killed", shared=shared)
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive(), "waited 60 s in vain: the thread that kills workers ends"
    print(f"{len(killed)} workers died, {done.ran} of {len(done.runs)} runs were told of by whoever did them")
    assert killed, "somebody died"
    tailwater.sweep(spec, store="whole")
    same("whole", "killed")
    # What was found there after a death was not done again, and nothing was told that was not done.
    assert done.ran <= len(done.runs)
    assert tailwater.sweep(spec, store="killed").ran == 0


def test_a_sweep_can_be_left_and_taken_up(local):
    """Some runs are there, one is damaged, one half written: only those two are done."""
    import shutil

    shutil.copytree(local, "part")
    runs = sorted(path for path in Path("part").iterdir() if len(path.name) == 32)
    shutil.rmtree(runs[0])
    (runs[1] / "flows.parquet").write_bytes(b"")
    with ProcessPoolExecutor(2) as executor:
        assert tailwater.sweep(SWEEP, executor, store="part").ran == 2
    same(local, "part")
    assert contents("part")
