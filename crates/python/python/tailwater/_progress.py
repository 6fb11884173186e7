"""How far things are: a bar of tqdm's where it is installed, a plain line elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

#: ``True`` for a bar, or what is to be called now and then with three numbers.
Progress = Union[bool, Callable[[float, float, int], Any], None]


class _Plain:
    """A line that is written over; nothing without a terminal."""

    def __init__(self) -> None:
        self.shown = 0

    def show(self, share: float, text: str) -> None:
        if sys.stderr.isatty():
            line = f"\r{'█' * int(share * 20):·<20} {share:4.0%} {text}"
            sys.stderr.write(line + " " * max(0, self.shown - len(line)))
            sys.stderr.flush()
            self.shown = len(line)

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\r" + " " * self.shown + "\r")


class _Tqdm:
    def __init__(self, tqdm: Any) -> None:
        self.bar = tqdm(total=1000, leave=False, bar_format="{percentage:3.0f}%|{bar}| {desc} [{elapsed}<{remaining}]")

    def show(self, share: float, text: str) -> None:
        self.bar.set_description_str(text, refresh=False)
        self.bar.update(int(share * 1000) - self.bar.n)

    def close(self) -> None:
        self.bar.close()


def _bar() -> Union[_Plain, _Tqdm]:
    try:
        # In a notebook without widgets it warns, and draws a plain bar.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return _Plain()
    return _Tqdm(tqdm)


@contextmanager
def reporting(progress: Progress, words: Callable[[float, int, float], str]) -> Iterator[Optional[Callable[..., Any]]]:
    """What is to be called. ``words`` makes a text of the first and the last number, and of the seconds so far."""
    if not progress:
        yield None
        return
    if progress is not True:
        yield progress
        return
    bar, start = _bar(), time.monotonic()
    try:
        yield lambda first, share, last: bar.show(share, words(first, last, time.monotonic() - start))
    finally:
        bar.close()


def of_run(seconds: float, hops: int, elapsed: float) -> str:
    """Of a run."""
    return f"{seconds * 1e6:.1f} us simulated, {hops / max(elapsed, 1e-9) / 1e6:.1f} M packet-hops/s"


def of_grid(done: float, runs: int, _elapsed: float) -> str:
    """Of several."""
    return f"{done:.0f} of {runs} runs"
