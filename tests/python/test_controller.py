"""Congestion controllers in Python."""

from pathlib import Path

import pytest
import tailwater
from conftest import SMALL, contents, same
from tailwater import CongestionControl


#: Long enough for congestion control to show.
BUSY = {**SMALL, "load": [{"sizes": "websearch", "load": 0.6, "duration": "400us"}]}


class Dctcp(CongestionControl):
    """DCTCP as crates/schemes has it."""

    def __init__(self, gain=1 / 16, ai=615_000_000, min_rate=1_000_000_000, packet=1000):
        self.gain, self.ai, self.min_rate, self.packet = gain, ai, min_rate, packet

    def start(self, flow, permit):
        self.line, self.round, self.alpha, self.marks, self.expected, self.cut = flow.line, 0, 1.0, 0, 0, None

    def ack(self, ack, permit):
        self.marks += ack.marked
        round_over = ack.seq > self.round
        if round_over:
            if self.round == 0:
                self.expected = ack.next // self.packet + 1
            else:
                share = min(self.marks / self.expected, 1.0)
                self.alpha = (1 - self.gain) * self.alpha + self.gain * share
                self.marks, self.expected = 0, max(ack.next - ack.seq, 0) // self.packet + 1
            self.round = ack.next
        if self.cut is not None and ack.seq > self.cut:
            self.cut = None
        if ack.marked and self.cut is None:
            permit.rate = max(int(permit.rate * (1 - self.alpha / 2)), self.min_rate)
            self.cut = ack.next
        if self.cut is None and round_over:
            permit.rate = min(permit.rate + self.ai, self.line)


@pytest.mark.parametrize("edge", ["none", "onramp"])
def test_dctcp_in_python_gives_the_bytes_of_dctcp_in_rust(edge):
    scheme = {"flow_control": "pfc", "edge_control": edge}
    rust = tailwater.run({**BUSY, "scheme": {**scheme, "congestion_control": "dctcp"}})
    python = tailwater.run({**BUSY, "scheme": scheme}, congestion_control=Dctcp())
    assert rust.summary["slowdown"] != tailwater.run({**BUSY, "scheme": scheme}).summary["slowdown"]
    rust.write("rust", report=False)
    python.write("python", report=False)
    for name in ["flows.parquet", "links.parquet", "buffers.parquet"]:
        assert contents("rust")[name] == contents("python")[name], name
    assert python.summary["congestion_control"] == "Dctcp"
    assert python.scenario.endswith("# Run with a congestion control written in Python: Dctcp\n")


class Aimd(CongestionControl):
    def start(self, flow, permit):
        self.line, self.next_cut = flow.line, 0
        permit.timer = 10_000_000

    def ack(self, ack, permit):
        if ack.marked and ack.seq >= self.next_cut:
            permit.rate, self.next_cut = max(permit.rate / 2, 1e9), ack.next

    def timer(self, now, permit):
        permit.rate = min(permit.rate + 1e9, self.line)
        permit.timer = now + 10_000_000


def test_timers_are_called_and_two_runs_are_the_same():
    tailwater.run(BUSY, congestion_control=Aimd()).write("one", report=False)
    tailwater.run(BUSY, congestion_control=Aimd(), threads=4).write("two", report=False)
    same("one", "two")
    none = tailwater.run({**BUSY, "scheme": {}})
    assert tailwater.open("one").summary["slowdown"] != none.summary["slowdown"]


class Sees(CongestionControl):
    telemetry = True
    delay = True
    header = (2, 42)
    seen = []

    def ack(self, ack, permit):
        Sees.seen.append((ack.now, ack.rtt, ack.delay, [(hop.time, hop.sent, hop.queued, hop.rate) for hop in ack.telemetry]))


def test_telemetry_and_delays_are_there_if_asked_for():
    Sees.seen.clear()
    tailwater.run(SMALL, congestion_control=Sees())
    assert all(0 < delay < rtt <= now for now, rtt, delay, _ in Sees.seen)
    hops = [hop for *_, telemetry in Sees.seen for hop in telemetry]
    assert hops and {rate for *_, rate in hops} == {100_000_000_000}
    assert {len(telemetry) for *_, telemetry in Sees.seen} <= {1, 2, 3}


class Wrong(CongestionControl):
    def __init__(self, what):
        self.what = what

    def ack(self, ack, permit):
        if self.what == "raise":
            raise LookupError("mine")
        setattr(permit, *self.what)


@pytest.mark.parametrize(
    "what, error, text",
    [
        ("raise", LookupError, "mine"),
        (("rate", 0), ValueError, "at least 1"),
        (("rate", float("nan")), ValueError, "at least 1"),
        (("rate", -5), ValueError, "at least 1"),
        (("rate", "fast"), ValueError, "bits per second"),
        (("timer", 0), ValueError, "not after now"),
        (("timer", 2**63), ValueError, "too far away"),
        (("resume", 2**63), ValueError, "too far away"),
        (("speed", 1), AttributeError, "speed"),
    ],
)
def test_an_exception_ends_the_run_and_is_raised(what, error, text):
    with pytest.raises(error, match=text):
        tailwater.run(SMALL, congestion_control=Wrong(what))


def test_what_is_no_controller_is_refused():
    with pytest.raises(TypeError, match="no method start"):
        tailwater.run(SMALL, congestion_control=object())
    with pytest.raises(TypeError, match="not the class"):
        tailwater.run(SMALL, congestion_control=Aimd)
    with pytest.raises(tailwater.Problem, match="ndp is all the control there is"):
        tailwater.run({**SMALL, "scheme": {"preset": "ndp"}}, congestion_control=Aimd())


def test_a_controller_that_needs_a_window_gets_one():
    windows = set()

    class Windowed(CongestionControl):
        needs_window = True

        def start(self, flow, permit):
            windows.add(flow.window)

    tailwater.run({**SMALL, "scheme": {}}, congestion_control=Windowed())
    assert windows and 0 not in windows
    with pytest.raises(tailwater.Problem, match="defined only with a window"):
        tailwater.run({**SMALL, "scheme": {"window": "none"}}, congestion_control=Windowed())


def test_the_twenty_lines_of_the_manual_are_twenty():
    text = (Path(__file__).parents[2] / "docs/python.md").read_text()
    piece = next(piece for piece in text.split("```python\n")[1:] if "class Aimd" in piece).split("```")[0]
    assert len([line for line in piece.splitlines() if line.strip()]) <= 20
