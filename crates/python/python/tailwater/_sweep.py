"""Sweeps: many runs, done here or by the workers of any executor of ``concurrent.futures``."""

from __future__ import annotations

import os
import secrets
import tempfile
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Union

from . import _progress, _tailwater
from ._problem import BrokenPromise, Problem
from ._progress import Progress
from ._results import Comparison
from ._scenario import Scenario, Source, folder, source

#: How often a run is handed out again that failed for no reason of its own, such as a worker that was killed.
_TRIES = 20


@dataclass(frozen=True)
class Job:
    """A run as it goes to a worker: its whole text, and the name that it must come to there."""

    source: Source
    labels: List[Tuple[str, str]]
    seed: int
    sets: List[str]
    digest: str
    store: str
    #: A file in the store by which a worker checks that it sees the same store.
    token: str
    record: bool
    threads: int


#: The files of a run that was done where the store is not, by name.
Files = Dict[str, bytes]


def work(job: Job) -> Tuple[bool, Optional[Files]]:
    """What a worker does: whether the run was done now, and its files if they could not be put into the store."""

    def run(store: str) -> Tuple[str, bool]:
        run = (job.source, job.labels, job.seed, job.sets, job.digest)
        return _tailwater.work(*run, store, job.record, job.threads)

    if job.token and Path(job.store, job.token).is_file():
        return run(job.store)[1], None
    with tempfile.TemporaryDirectory() as place:
        path, ran = run(place)
        return ran, {file.name: file.read_bytes() for file in Path(path).iterdir()}


def sweep(
    spec: Scenario,
    executor: Optional[Executor] = None,
    *,
    store: Union[str, "os.PathLike[str]"] = "results/runs",
    record: bool = False,
    shared: bool = True,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Comparison:
    """Runs a sweep: a file, its text, or a dictionary. What is in the store is not run again.

    Without an ``executor`` the runs are done here, on ``threads`` threads. With one, each run is a task of ``threads`` threads (one,
    unless said otherwise) for its workers. Workers that see the store write into it; the others, or all if ``shared`` is
    false, send the files of a run back. The store is the same in every case. A task whose worker was lost is handed out again.
    """
    name, _, text, base = source(spec)
    plan = _tailwater.Plan.sweep(name, text, base)
    with _progress.reporting(progress, _progress.of_grid) as report:
        if executor is None:
            folders, ran, notes = plan.run(os.fspath(store), record, threads, report)
            return Comparison(plan, folders, ran, notes)
        ran = _hand_out(plan, executor, folder(store), record, shared, threads or 1, report)
    folders, more, notes = plan.run(os.fspath(store), record, 1)
    return Comparison(plan, folders, ran + more, notes)


def _hand_out(
    plan: _tailwater.Plan,
    executor: Executor,
    store: str,
    record: bool,
    shared: bool,
    threads: int,
    report: Optional[Callable[..., Any]],
) -> int:
    """Has the runs done that the store lacks, and gives how many were done."""
    seen: Set[str] = set()
    jobs: List[Job] = []
    name, title, text, base = plan.source
    whole = (name, title, text, folder(base or "."))
    Path(store).mkdir(parents=True, exist_ok=True)
    token = f".shared-{secrets.token_hex(8)}" if shared else ""
    for (labels, seed, sets, digest), found in zip(plan.cells, plan.found(store, record)):
        if not found and digest not in seen:
            seen.add(digest)
            jobs.append(Job(whole, labels, seed, sets, digest, store, token, record, threads))
    if token:
        Path(store, token).touch()
    waiting: Dict[Future[Tuple[bool, Optional[Files]]], Tuple[Job, int]] = {}
    ran = done = 0
    try:
        waiting.update((executor.submit(work, job), (job, 1)) for job in jobs)
        while waiting:
            # Not for ever: Ctrl-C is heard in between.
            for future in wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED).done:
                job, tries = waiting.pop(future)
                try:
                    now, files = future.result()
                except (Problem, BrokenPromise):
                    raise
                except (Exception, CancelledError):
                    if tries == _TRIES:
                        raise
                    # An executor that is broken as a whole says so here.
                    waiting[executor.submit(work, job)] = (job, tries + 1)
                    continue
                if files is not None:
                    _tailwater.keep(files, job.digest, store, record)
                ran, done = ran + now, done + 1
                if report is not None:
                    report(done, done / len(jobs), len(jobs))
    finally:
        for future in waiting:
            future.cancel()
        if token:
            Path(store, token).unlink()
    return ran
