"""One run: the same as the command line's, to the byte."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import tailwater
from conftest import EXAMPLES, ROOT, SMALL, contents, same

try:
    import tomllib
except ImportError:  # before 3.11
    tomllib = None


@pytest.mark.parametrize(
    "example, sets",
    [
        ("incast", ["scheme.preset=hpcc", "switch.buffer=1MB"]),
        ("websearch_incast", ['measure.ports=["hosts"]', "load.0.duration=300us", "incast.0.duration=300us"]),
        ("hot_spot", []),
        ("lossy_link", []),
    ],
)
def test_a_folder_from_python_has_the_bytes_of_the_command_lines(cli, example, sets):
    path = os.path.relpath(EXAMPLES / f"{example}.toml")
    options = [word for text in sets for word in ("--set", text)]
    assert cli("run", path, *options, "--out", "cli", "--record", "-q") is None
    tailwater.run(path, sets=sets, record=True).write("python")
    names = same("cli", "python")
    assert {"flows.parquet", "recording.bin", "report.html", "summary.json", "scenario.toml"} <= set(names)


def test_a_dictionary_and_a_text_give_the_same_as_their_file():
    text = tailwater.dumps(SMALL)
    Path("small.toml").write_text(text)
    tailwater.run("small.toml").write("file")
    tailwater.run(SMALL).write("dictionary")
    tailwater.run(text).write("text")
    same("file", "dictionary")
    same("file", "text")


@pytest.mark.skipif(tomllib is None, reason="needs a reader of TOML")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_means_the_same_as_a_dictionary(path):
    text = path.read_text()
    assert tomllib.loads(tailwater.dumps(tomllib.loads(text))) == tomllib.loads(text)


@pytest.mark.skipif(tomllib is None, reason="needs a reader of TOML")
def test_what_toml_can_say_is_written_so_that_it_is_read_back():
    table = {
        "a b": 'quote " back \\ line\nbreak \u0007 ü',
        "n": [1, 2.5, -3, True, 1e300],
        "empty": [],
        "deep": {"x": {"y": [{"z": 1, "w": {"v": "u"}}, {"z": 2}]}, "t": [[1], ["a", {"b": 1}]]},
    }
    assert tomllib.loads(tailwater.dumps(table)) == table
    with pytest.raises(TypeError, match="cannot be written"):
        tailwater.dumps({"a": object()})


def test_changes_as_a_dictionary_are_those_of_the_command_line():
    from tailwater._scenario import changes

    sets = {"switch.buffer": "4MB", "seed": 3, "scheme.preset": "dcqcn+win", "name": "true", "measure.ports": ["hosts"]}
    assert changes(sets) == [
        "switch.buffer=4MB",
        "seed=3",
        "scheme.preset=dcqcn+win",
        'name="true"',
        'measure.ports=["hosts"]',
    ]
    assert tailwater.run(SMALL, sets={"name": "12", "seed": 7}).summary["scenario"] == "12"


def test_no_threads_at_all_are_refused():
    with pytest.raises(ValueError, match="threads is 0: write 1 or more"):
        tailwater.run(SMALL, threads=0)


def test_threads_do_not_show():
    one = tailwater.run(SMALL, threads=1)
    many = tailwater.run(SMALL, threads=4)
    one.summary.pop("cost"), many.summary.pop("cost")
    assert one.summary == many.summary
    assert one.flows.to_pyarrow().equals(many.flows.to_pyarrow())


def test_a_folder_can_be_opened_again():
    result = tailwater.run(SMALL, sets={"measure.ports": ["hosts"]})
    result.write("here")
    again = tailwater.open("here")
    # Writing takes memory, too.
    assert {**again.summary, "cost": {}} == {**result.summary, "cost": {}}
    assert set(again.tables) == {"flows", "links", "buffers", "ports"} and again.rates is None
    for name, table in again.tables.items():
        assert table.to_pyarrow().equals(result.tables[name].to_pyarrow()), name
    again.write("copy")
    same("here", "copy")


def test_the_parts_of_a_flow_add_up_to_its_time():
    result = tailwater.run(SMALL, sets={"measure.why": True})
    assert tailwater.run(SMALL).parts is None
    flows = result.flows.to_pyarrow().to_pydict()
    sums = [0] * len(flows["flow"])
    parts = result.parts.to_pyarrow().to_pydict()
    for flow, time in zip(parts["flow"], parts["time_ps"]):
        sums[flow] += time
    assert sums == flows["received_ps"]
    groups = result.summary["why"]["parts"]
    assert sum(sum(group["parts_ps"].values()) for group in groups) == sum(sums)
    result.write("here")
    again = tailwater.open("here")
    assert again.parts.to_pyarrow().equals(result.parts.to_pyarrow())
    assert "parts" in again.figures()


def test_a_run_that_was_asked_says_why_from_memory_and_from_its_folder():
    small = {"measure.why": True, "scheme.preset": "lossy", "switch.buffer": "60KB", "nic.timeout": "200us"}
    result = tailwater.run(SMALL, sets=small)
    result.write("here")
    again = tailwater.open("here")
    for table in ("stops", "waits", "losses", "drops", "fillers", "parts"):
        assert again.tables[table].to_pyarrow().equals(result.tables[table].to_pyarrow()), table
    assert result.explain() == again.explain() and "dropped" in " ".join(result.explain()["sentences"])
    assert result.explain(flow=0)["sentences"][0].startswith("flow 0 (")
    assert again.explain(at="1us")["sentences"]
    with pytest.raises(tailwater.Problem, match="there is no flow 10000"):
        result.explain(flow=10000)
    with pytest.raises(ValueError, match="one of"):
        result.explain(flow=0, at="1us")
    with pytest.raises(ValueError, match="measure.why"):
        tailwater.run(SMALL).explain()


@pytest.mark.parametrize(
    "text, sets",
    [
        ('[topology]\nkind = "star"\nhosts = "many"\n', []),
        ('[topology]\nkind = "star"\nhosts = 4\n[scheme]\npreset = "hpc"\n', []),
        ("[topology\n", []),
        ('[topology]\nkind = "star"\nhosts = 4\n', ["switch.bufer=1MB"]),
        ('[topology]\nkind = "star"\nhosts = 4\n', ["buffer"]),
        ('[topology]\nkind = "star"\nhosts = 4\n[[flow]]\nsrc = "h1"\ndst = "h9"\nsize = "1KB"\n', []),
    ],
)
def test_a_problem_has_the_command_lines_text_and_place(cli, text, sets):
    Path("bad.toml").write_text(text)
    said = cli("run", "bad.toml", *[word for s in sets for word in ("--set", s)], "--out", "out")
    with pytest.raises(tailwater.Problem) as caught:
        tailwater.run("bad.toml", sets=sets)
    problem = caught.value
    assert f"error: {problem}\n" == said
    assert isinstance(problem, ValueError) and problem.file in said and problem.message in said
    if problem.line:
        assert f"bad.toml:{problem.line}:{problem.column}: " in said
    assert problem.help in said
    again = pickle.loads(pickle.dumps(problem))
    assert (str(again), again.file, again.line, again.help) == (str(problem), problem.file, problem.line, problem.help)


def test_a_file_that_is_not_there_and_a_folder_that_is_taken_are_problems(cli):
    said = cli("run", "nowhere.toml")
    with pytest.raises(tailwater.Problem) as caught:
        tailwater.run("nowhere.toml")
    assert f"error: {caught.value}\n" == said
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("…")
    with pytest.raises(tailwater.Problem, match="does not hold results"):
        tailwater.run(SMALL).write("mine")
    assert os.listdir("mine") == ["thesis.txt"]


def test_broken_promises_say_which_and_can_be_sent():
    broken = pickle.loads(pickle.dumps(tailwater.BrokenPromise(["two bytes are missing"])))
    assert str(broken) == "broken promise: two bytes are missing"
    assert broken.violations == ["two bytes are missing"] and isinstance(broken, RuntimeError)


#: Long enough to be interrupted: minutes, with few flows to plan.
LONG = {
    "topology": {"kind": "star", "hosts": 8, "rate": "100Gbps", "delay": "1us"},
    "scheme": {"preset": "dcqcn+win"},
    "flow": [{"src": f"h{n}", "dst": "h0", "size": "20GB"} for n in range(1, 8)],
}


def test_progress_is_told_and_its_exceptions_end_the_run():
    told = []

    class Enough(Exception):
        pass

    def tell(seconds, share, hops):
        told.append((seconds, share, hops))
        if hops > 0 and len(told) > 3:
            raise Enough

    with pytest.raises(Enough):
        tailwater.run(LONG, progress=tell)
    assert all(a <= b for a, b in zip(told, told[1:]))
    assert told[-1][0] > 0 and 0 < told[-1][1] < 1
    told.clear()
    result = tailwater.run(SMALL, progress=lambda *three: told.append(three))
    assert told[-1] == (pytest.approx(result.summary["end_ps"] / 1e12), 1.0, result.summary["packet_hops"])
    tailwater.run(SMALL, progress=True)


def test_other_threads_go_on_while_a_run_does():
    counted = [0]
    over = threading.Event()

    def count():
        # Over when the run is, which has minutes to do.
        end = time.monotonic() + 600
        while not over.is_set() and time.monotonic() < end:
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    seen = []

    def tell(_seconds, _share, hops):
        seen.append(counted[0])
        if len(seen) > 10:
            raise KeyError

    try:
        with pytest.raises(KeyError):
            tailwater.run(LONG, progress=tell, threads=1)
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive(), "waited 60 s in vain: the thread that counts ends"
    # Ten times 50 ms, of which each counting takes a little more than one: a run that kept the lock would leave next to none.
    assert seen[-1] - seen[0] > 50


@pytest.mark.parametrize("call", ["run(LONG)", "compare(LONG, ['dcqcn', 'hpcc'])", "run(LONG, congestion_control=C())"])
def test_ctrl_c_is_heard(call):
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import tailwater
from tailwater import *
from test_run import LONG
class C(CongestionControl): pass
print("go", flush=True)
try:
    tailwater.{call}
except KeyboardInterrupt:
    print("interrupted")
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=120)
    assert (said, child.returncode) == ("interrupted\n", 0)


def test_figures_and_summaries_are_shown():
    result = tailwater.run(SMALL)
    figures = result.figures()
    assert "slowdowns-incast" in figures
    figure = figures["slowdowns-incast"]
    assert figure._repr_svg_().startswith("<svg")
    figure.save("figure.svg")
    assert Path("figure.svg").read_text() == figure.svg
    result.write("here")
    assert Path("here/figures/slowdowns-incast.svg").read_text() == figure.svg
    assert "data:image/svg+xml" in result._repr_html_() and "small" in result._repr_html_()


def test_a_recording_may_say_how_long_its_frames_are():
    tailwater.run(SMALL, record="2us").write("recorded", report=False)
    assert "recording.bin" in contents("recorded") and "report.html" not in contents("recorded")
    with pytest.raises(tailwater.Problem, match="more than a second"):
        tailwater.run(SMALL, record="2s")


def test_memory_is_given_back():
    def resident():
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    for _ in range(5):
        tailwater.run(SMALL, threads=1).flows.to_pyarrow()
    before = resident()
    for _ in range(40):
        tailwater.run(SMALL, threads=1).flows.to_pyarrow()
    # A run and its tables have about 4 MB.
    assert resident() - before < 40_000, "kilobytes"


def test_what_exists_is_listed():
    schemes = tailwater.schemes()
    names = {(entry["kind"], entry["name"]) for entry in schemes}
    assert {("preset", "hpcc"), ("flow_control", "bfc"), ("congestion_control", "dctcp"), ("topology", "fat-tree")} <= names
    dctcp = next(entry for entry in schemes if (entry["kind"], entry["name"]) == ("congestion_control", "dctcp"))
    assert "gain" in [parameter["name"] for parameter in dctcp["parameters"]]
    ids = {claim["id"] for claim in tailwater.claims()}
    files = {str(p.relative_to(ROOT / "experiments").with_suffix("")) for p in (ROOT / "experiments").rglob("*.toml")}
    assert ids == files
