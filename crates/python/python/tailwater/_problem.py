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
    #: The key at fault, such as ``switch.buffer`` or ``flow.0.size``.
    key: Optional[str]
    #: What sort of thing is wrong: ``unreadable``, ``syntax``, ``unknown-key``, ``missing-key``, ``value``,
    #: ``fabric``, ``broken-promise`` or ``other``.
    cause: Optional[str]

    def __init__(
        self,
        text: str,
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        message: Optional[str] = None,
        help: Optional[str] = None,
        key: Optional[str] = None,
        cause: Optional[str] = None,
    ) -> None:
        super().__init__(text)
        self.file, self.line, self.column, self.message, self.help = file, line, column, message, help
        self.key, self.cause = key, cause

    def __reduce__(self) -> Any:
        place = (self.file, self.line, self.column)
        return type(self), (str(self), *place, self.message, self.help, self.key, self.cause)


class BrokenPromise(RuntimeError):
    """A run that did not keep what it promises, such as losing nothing: it is not a result."""

    #: The promises.
    violations: list[str]
    #: What came out all the same, for inspection, where there is one.
    result: Any

    def __init__(self, violations: Sequence[str], text: Optional[str] = None) -> None:
        super().__init__(text if text is not None else "\n".join(f"broken promise: {v}" for v in violations))
        self.violations, self.result = list(violations), None

    def __reduce__(self) -> Any:
        return type(self), (self.violations, str(self))
