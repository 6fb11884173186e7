"""What comes out, as objects that a notebook shows."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _tailwater
from ._tailwater import Table

_STYLE = "style='text-align:left;padding:2px 12px 2px 0'"


def _rows(rows: Iterable[Iterable[Any]], head: Optional[Iterable[str]] = None) -> str:
    def line(cells: Iterable[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} {_STYLE}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + (line(head, "th") if head else "") + "".join(line(row, "td") for row in rows) + "</table>"


class Figure:
    """A figure as SVG; a notebook shows it."""

    def __init__(self, id: str, svg: str) -> None:
        self.id, self.svg = id, svg

    def _repr_svg_(self) -> str:
        return self.svg

    def _image(self) -> str:
        # In an image of its own: what two drawings call the same stays apart.
        data = base64.b64encode(self.svg.encode()).decode()
        return f"<img alt='{escape(self.id)}' src='data:image/svg+xml;base64,{data}' style='width:min(100%,440px)'>"

    def save(self, path: Union[str, Path]) -> None:
        """Writes the SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Figure({self.id!r})"


class Figures(Dict[str, Figure]):
    """Figures by their ids; a notebook shows them all."""

    def __init__(self, drawn: Iterable[Tuple[str, str]]) -> None:
        super().__init__((id, Figure(id, svg)) for id, svg in drawn)

    def _repr_html_(self) -> str:
        return f"<div>{''.join(figure._image() for figure in self.values())}</div>"


class Result:
    """What a run gave: tables in memory, a summary, figures.

    The tables speak Arrow's PyCapsule interface; pyarrow, pandas and Polars take them without a copy.
    """

    def __init__(
        self,
        summary: str,
        scenario: str,
        tables: Dict[str, Table],
        notes: Iterable[str] = (),
        run: Optional[_tailwater.Run] = None,
        folder: Optional[Path] = None,
    ) -> None:
        #: ``summary.json`` as a dictionary.
        self.summary: Dict[str, Any] = json.loads(summary)
        #: The scenario as it was run.
        self.scenario: str = scenario
        #: All tables by name.
        self.tables: Dict[str, Table] = tables
        #: What the user should know.
        self.notes: List[str] = list(notes)
        #: The folder it was read from, if it was.
        self.folder: Optional[Path] = folder
        self._run = run
        self._figures: Optional[Figures] = None

    @property
    def flows(self) -> Table:
        """Flow by flow."""
        return self.tables["flows"]

    @property
    def links(self) -> Table:
        """Link by link, both directions."""
        return self.tables["links"]

    @property
    def buffers(self) -> Table:
        """The switches' memory over time."""
        return self.tables["buffers"]

    @property
    def ports(self) -> Optional[Table]:
        """The ports of ``measure.ports`` over time, if there are any."""
        return self.tables.get("ports")

    @property
    def rates(self) -> Optional[Table]:
        """The flows of ``measure.flows`` over time, if there are any."""
        return self.tables.get("rates")

    @property
    def parts(self) -> Optional[Table]:
        """Where the time of every flow went, if ``measure.why`` asked for it."""
        return self.tables.get("parts")

    @property
    def stops(self) -> Optional[Table]:
        """Every stop with who ordered it and what filled that node, if the scenario has ``measure.why``."""
        return self.tables.get("stops")

    @property
    def waits(self) -> Optional[Table]:
        """The flows that waited at each stop, if the scenario has ``measure.why``."""
        return self.tables.get("waits")

    @property
    def losses(self) -> Optional[Table]:
        """What flows lost on links, if the scenario has ``measure.why``."""
        return self.tables.get("losses")

    @property
    def drops(self) -> Optional[Table]:
        """What flows lost for want of room and what had taken it, if the scenario has ``measure.why`` and something was dropped."""
        return self.tables.get("drops")

    @property
    def fillers(self) -> Optional[Table]:
        """Who filled the ports because of which packets were dropped, if the scenario has ``measure.why`` and some were."""
        return self.tables.get("fillers")

    def write(self, folder: Union[str, Path], report: bool = True) -> Path:
        """Writes the folder that ``tailwater run`` writes, and gives its path."""
        if self._run is not None:
            return Path(self._run.write(str(folder), report))
        if self.folder is None:
            raise ValueError("this result has neither a run nor a folder")
        return Path(shutil.copytree(self.folder, folder))

    @contextmanager
    def _as_folder(self) -> Iterator[str]:
        if self.folder is not None:
            yield str(self.folder)
        else:
            with tempfile.TemporaryDirectory() as place:
                yield str(self.write(Path(place) / "run", report=False))

    def figures(self) -> Figures:
        """The figures of its report."""
        if self._figures is None:
            with self._as_folder() as folder:
                self._figures = Figures(_tailwater.draw(folder))
        return self._figures

    def explain(
        self, flow: Optional[int] = None, link: Optional[str] = None, at: Optional[str] = None
    ) -> Dict[str, Any]:
        """Why flows waited, or one of them, or why a link was stopped, or what was at an instant: what
        ``tailwater explain --json`` says. ``["sentences"]`` has it in words."""
        if sum(asked is not None for asked in (flow, link, at)) > 1:
            raise ValueError("give one of flow, link and at, or none")
        with self._as_folder() as folder:
            said = _tailwater.explain(folder, flow, link, at)
        if said is None:
            raise ValueError('this run was not asked why: run it again with sets={"measure.why": True}')
        return dict(json.loads(said))

    def __repr__(self) -> str:
        s = self.summary
        scheme = f"{s['flow_control']} with {s['congestion_control']}"
        return f"Result({s['scenario']!r}: {scheme}, {s['finished']} of {s['flows']} flows, {s['ending']})"

    def _repr_html_(self) -> str:
        s, slow = self.summary, self.summary["slowdown"]
        facts = [
            ("flow control, congestion control", f"{s['flow_control']}, {s['congestion_control']}"),
            ("seed", s["seed"]),
            ("flows finished", f"{s['finished']} of {s['flows']} ({s['ending']})"),
            ("simulated", f"{s['end_ps'] / 1e6:.1f} µs"),
            ("slowdown p50, p99, p99.9", ", ".join("–" if slow[q] is None else f"{slow[q]:.3g}" for q in ("p50", "p99", "p999"))),
            ("peak buffer", f"{s['buffer']['peak'] / 1e3:.1f} KB"),
            ("dropped, marked", f"{s['dropped']['packets']}, {s['marked']}"),
            ("time paused", f"{s['pause']['share']:.2%}"),
        ]
        return f"<b>{escape(s['scenario'])}</b>{_rows(facts)}{self.figures()._repr_html_()}"


@dataclass(frozen=True)
class Cell:
    """One run of a comparison or a sweep."""

    #: Where in the grid it is.
    labels: Dict[str, str]
    #: Its seed.
    seed: int
    #: What names it in a store.
    digest: str
    #: Where its results are.
    folder: Path

    def open(self) -> Result:
        """Reads its results."""
        summary, scenario, tables = _tailwater.open(str(self.folder))
        return Result(summary, scenario, tables, folder=self.folder)


class Comparison:
    """Several runs side by side."""

    def __init__(self, plan: _tailwater.Plan, folders: List[str], ran: int, notes: Iterable[str]) -> None:
        self._plan, self._folders = plan, folders
        cells = zip(plan.cells, folders)
        #: The runs.
        self.runs: List[Cell] = [Cell(dict(labels), seed, digest, Path(f)) for (labels, seed, _, digest), f in cells]
        #: How many of them were done now; the others were in the store.
        self.ran: int = ran
        #: What the user should know.
        self.notes: List[str] = list(notes)
        #: A line for each point of the grid: means over seeds, and halves of their 95 % intervals (``_ci95``).
        self.table: Table
        self.table, self._text = plan.table(folders)
        self._figures: Optional[Figures] = None

    def figures(self) -> Figures:
        """The runs side by side, those that differ in their seed only as one curve."""
        if self._figures is None:
            self._figures = Figures(self._plan.draw(self._folders))
        return self._figures

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Comparison({len(self.runs)} runs, {self.ran} new)"

    def _repr_html_(self) -> str:
        shown = len(self.runs) <= 300
        return f"<pre>{escape(self._text)}</pre>" + (self.figures()._repr_html_() if shown else "")


class Verdict:
    """Whether what a paper claims holds."""

    def __init__(self, text: str, line: str, values: List[Tuple[str, str]], figures: List[Tuple[str, str]]) -> None:
        #: ``verdict.json`` as a dictionary.
        self.json: Dict[str, Any] = json.loads(text)
        #: The verdict in a line.
        self.line: str = line
        self._values, self._figures = values, Figures(figures)

    @property
    def id(self) -> str:
        """The experiment."""
        return str(self.json["id"])

    @property
    def verdict(self) -> str:
        """``holds``, ``holds in part``, ``does not hold``, ``cannot tell``, ``needs a scheme``, ``not run`` or ``measured``."""
        return str(self.json["verdict"])

    @property
    def holds(self) -> bool:
        """Whether every expectation holds."""
        return self.verdict == "holds"

    @property
    def expectations(self) -> List[Dict[str, Any]]:
        """What was expected, one by one, with what was measured."""
        return list(self.json["expectations"])

    def figures(self) -> Figures:
        """The paper's figures, rebuilt."""
        return self._figures

    def __repr__(self) -> str:
        return f"Verdict({self.id}: {self.line})"

    def _repr_html_(self) -> str:
        rows = [(j["holds"], *values, j["paper"]) for j, values in zip(self.expectations, self._values)]
        head = f"<b>{escape(self.id)}</b>: {escape(self.json['title'])} ({escape(self.json['document'])})"
        table = _rows(rows, ("", "measured", "expected", "the paper says"))
        return f"{head}<br>{escape(self.line)}{table}{self._figures._repr_html_()}"


@dataclass(frozen=True)
class Ns3:
    """What running the ns-3 simulator's files gave."""

    #: In a line.
    summary: str
    #: What the user should know.
    notes: List[str]
    #: The files that were written: completion times, pauses and, if asked for, queue lengths.
    files: List[Path]
