"""Tailwater: a laboratory for flow control in lossless data-centre fabrics.

    >>> import tailwater
    >>> result = tailwater.run("examples/incast.toml", sets={"scheme.preset": "hpcc"})
    >>> result.flows.to_polars()
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

from . import _progress, _tailwater
from ._control import CongestionControl
from ._problem import BrokenPromise, Problem
from ._progress import Progress
from ._results import Cell, Comparison, Figure, Figures, Ns3, Result, Verdict
from ._scenario import Scenario, Sets, axes, changes, dumps, seeded, source
from ._sweep import sweep
from ._tailwater import Ack, Flow, Hop, Permit, Table

__version__: str = _tailwater.VERSION

__all__ = [
    "Ack",
    "BrokenPromise",
    "Cell",
    "Comparison",
    "CongestionControl",
    "Figure",
    "Figures",
    "Flow",
    "Hop",
    "Ns3",
    "Permit",
    "Problem",
    "Result",
    "Table",
    "Verdict",
    "claims",
    "compare",
    "dumps",
    "ns3",
    "open",
    "reproduce",
    "run",
    "schemes",
    "sweep",
]

_Path = Union[str, "os.PathLike[str]"]


def _skipping(sets: List[str], within: Optional[float]) -> List[str]:
    """The changes, with what may be skipped."""
    return sets if within is None else [*sets, f"fast_forward.within={within}"]


def run(
    scenario: Scenario,
    *,
    sets: Sets = None,
    threads: Optional[int] = None,
    within: Optional[float] = None,
    record: Union[bool, str] = False,
    congestion_control: Any = None,
    progress: Progress = None,
) -> Result:
    """Runs a scenario: a file, a text in TOML, or a dictionary.

    ``sets`` are changes, as after ``--set``. ``record`` keeps a recording, with frames of that length if it is a time such as
    ``"1us"``. ``congestion_control`` is a controller of one's own, see :class:`CongestionControl`; it takes the place of the
    scenario's. ``progress`` is ``True`` for a bar, or is called with simulated seconds, the share done and packet-hops.
    The results are the same with any number of ``threads``. ``within`` skips what is steady, as long as the error that is measured stays
    within this share, such as ``0.01``; the summary then says so under ``fast_forward``.
    """
    name, _, text, base = source(scenario)
    with _progress.reporting(progress, _progress.of_run) as report:
        every = record if isinstance(record, str) else None
        run = _tailwater.run(
            name, text, base, _skipping(changes(sets), within), threads, bool(record), every, congestion_control, report
        )
    result = Result(run.summary, run.scenario, run.tables(), run.notes, run=run)
    if run.violations:
        broken = BrokenPromise(run.violations)
        broken.result = result
        raise broken
    return result


def open(folder: _Path) -> Result:
    """Reads a folder of results, as ``tailwater run`` and the store have them."""
    summary, scenario, tables = _tailwater.open(os.fspath(folder))
    return Result(summary, scenario, tables, folder=Path(folder))


def compare(
    scenario: Scenario,
    schemes: Iterable[str] = (),
    *,
    seeds: Union[int, Iterable[int], None] = None,
    vary: Union[Mapping[str, Iterable[Any]], Iterable[str], None] = None,
    sets: Sets = None,
    store: _Path = "results/runs",
    within: Optional[float] = None,
    record: bool = False,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Comparison:
    """Runs a scenario with several schemes, varied values and seeds. What is in the store is not run again.

    ``seeds`` is how many, or which. ``within`` skips what is steady, as with :func:`run`. ``progress`` is ``True`` for a bar, or is called with the runs done, the share done and the
    runs in all.
    """
    names = schemes.split(",") if isinstance(schemes, str) else list(schemes)
    sets = _skipping(changes(sets), within)
    plan = _tailwater.Plan(source(scenario), *seeded(sets, names, axes(vary), seeds))
    with _progress.reporting(progress, _progress.of_grid) as report:
        folders, ran, notes = plan.run(os.fspath(store), record, threads, report)
    return Comparison(plan, folders, ran, notes)


def reproduce(
    id: str,
    *,
    scale: str = "quick",
    seeds: Optional[int] = None,
    store: _Path = "results/runs",
    out: Optional[_Path] = None,
    threads: Optional[int] = None,
    progress: Progress = None,
) -> Verdict:
    """Runs an experiment of the ledger, such as ``"bfc/fig5a"``, and says whether what its paper claims holds.

    With ``out`` its page and its verdict are written below that folder, as ``tailwater reproduce`` does.
    """
    place = None if out is None else os.fspath(out)
    with _progress.reporting(progress, _progress.of_grid) as report:
        return Verdict(*_tailwater.reproduce(id, scale, seeds, os.fspath(store), place, threads, report))


def ns3(config: _Path, *, progress: Progress = None) -> Ns3:
    """Runs the HPCC authors' ns-3 simulator's files, and writes its files. Paths are relative to the working directory."""
    with _progress.reporting(progress, _progress.of_run) as report:
        summary, notes, files = _tailwater.ns3(os.fspath(config), report)
    return Ns3(summary, notes, [Path(file) for file in files])


def schemes() -> List[Dict[str, Any]]:
    """Every preset, mechanism and topology, with parameters and defaults."""
    found: List[Dict[str, Any]] = json.loads(_tailwater.schemes())
    return found


def claims() -> List[Dict[str, Any]]:
    """Every experiment of the ledger: id, title, document, what it says."""
    found: List[Dict[str, Any]] = json.loads(_tailwater.claims())
    return found
