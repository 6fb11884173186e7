"""What all tests of the Python package have: the repository, the command line (``TAILWATER``), and a folder of their own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(Path(__file__).parent))

#: A run of a fraction of a second with marks, pauses and several groups of flows.
SMALL = {
    "name": "small",
    "topology": {"kind": "leaf-spine", "leaves": 2, "hosts_per_leaf": 8, "spines": 2},
    "scheme": {"preset": "dcqcn+win"},
    "load": [{"sizes": "websearch", "load": 0.4, "duration": "100us"}],
    "incast": [{"degree": 8, "size_each": "32KB", "every": "50us", "duration": "100us"}],
}

#: The command of a run: the first line of its scenario, and what its page says.
COMMAND = re.compile(rb"# tailwater run .*\n+|tailwater run [^<]*(?=</code>)")


@pytest.fixture
def cli():
    """Runs the command line; gives what it says on standard error if it fails."""
    program = os.environ.get("TAILWATER")
    if not program:
        pytest.skip("TAILWATER does not name the program")

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        return done.stderr if done.returncode else None

    return run


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def contents(folder):
    """Every file below a folder; a summary without what it cost, a scenario and a page without the command that Python does not
    have, and no digests of these. Claims come and go."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith(("claims", ".")):
            found[name] = path.read_bytes()
            if path.name == "summary.json":
                summary = json.loads(found[name])
                summary.pop("cost")
                found[name] = json.dumps(summary).encode()
            if path.name in ("scenario.toml", "report.html"):
                found[name] = COMMAND.sub(b"", found[name])
            if path.name == "SHA256SUMS":
                changed = (b"  summary.json", b"  scenario.toml", b"  report.html")
                found[name] = b"\n".join(line for line in found[name].splitlines() if not line.endswith(changed))
    return found


def same(one, other):
    """Whether two folders are the same to the byte, except for the cost and the command."""
    one, other = contents(one), contents(other)
    assert one.keys() == other.keys()
    differ = [name for name in one if one[name] != other[name]]
    assert not differ, f"{differ} differ"
    return list(one)
