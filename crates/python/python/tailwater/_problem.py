"""What goes wrong, as exceptions that can be pickled: they may come from another process."""

from __future__ import annotations

from typing import Any, Optional, Sequence


class Problem(ValueError):
    """Something wrong with an input; its text is what the command line says after ``error:``."""

    #: The file, as its reader names it.
    file: Optional[str]
    #: The line, counted from 1.
    line: Optional[int]
    #: The column in characters, counted from 1.
    column: Optional[int]
    #: What is wrong, without its place.
    message: Optional[str]
    #: What to do about it.
    help: Optional[str]

    def __init__(
        self,
        text: str,
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        message: Optional[str] = None,
        help: Optional[str] = None,
    ) -> None:
        super().__init__(text)
        self.file, self.line, self.column, self.message, self.help = file, line, column, message, help

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.file, self.line, self.column, self.message, self.help)


class BrokenPromise(RuntimeError):
    """A run that did not keep what it promises, such as losing nothing: it is not a result."""

    #: The promises.
    violations: list[str]
    #: What came out all the same, for inspection, where there is one.
    result: Any

    def __init__(self, violations: Sequence[str]) -> None:
        super().__init__("\n".join(v if "broken promise" in v else f"broken promise: {v}" for v in violations))
        self.violations, self.result = list(violations), None

    def __reduce__(self) -> Any:
        return type(self), (self.violations,)
