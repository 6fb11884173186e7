"""Congestion controllers in Python."""

from __future__ import annotations

from typing import Tuple

from ._tailwater import Ack, Flow, Permit


class CongestionControl:
    """A congestion controller: slow, and exact.

    Every flow gets a deep copy of the object given to :func:`tailwater.run` when it starts, so that what the methods put on
    ``self`` is the flow's own. Times are whole picoseconds, rates bits per second. A method answers by changing ``permit``:
    ``rate``, ``window`` (bytes that may be unacknowledged, with ``sets_window``), ``timer`` (when :meth:`timer` is to be called; ``None`` for never), ``resume`` (nothing is sent before), ``repace``.
    The same scenario gives the same results again as long as the methods use nothing but ``self`` and what they are given.
    """

    #: Whether it reacts to marks, so that switches make them (unless the scenario says otherwise).
    uses_marks: bool = True
    #: Whether it sees every ACK; otherwise only marked ones.
    every_ack: bool = True
    #: Whether ACKs bring what every switch on the path said.
    telemetry: bool = False
    #: Whether ACKs bring how long the packet was in flight.
    delay: bool = False
    #: Whether it is defined only with a window.
    needs_window: bool = False
    #: Whether ``permit.window`` is the flow's window; otherwise it is the scenario's.
    sets_window: bool = False
    #: Bytes that it adds to the header of every data packet, and to every ACK.
    header: Tuple[int, int] = (0, 0)

    def start(self, flow: Flow, permit: Permit) -> None:
        """The flow starts, at the rate of its line unless the permit is changed."""

    def ack(self, ack: Ack, permit: Permit) -> None:
        """An ACK arrived."""

    def timer(self, now: int, permit: Permit) -> None:
        """The time that the permit asked for has come."""
