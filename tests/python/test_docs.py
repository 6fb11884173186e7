"""The manual's code runs, and the types that it promises are there."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tailwater
from conftest import ROOT

PIECES = [
    piece
    for piece in re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S)
    if "import tailwater" in piece
]


def test_there_is_code_in_the_manual():
    assert len(PIECES) >= 6


@pytest.mark.parametrize("piece", PIECES, ids=range(len(PIECES)))
def test_the_manuals_code_runs(piece, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = tmp_path / "piece.py"
    script.write_text(piece)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_stubs_tell_of_everything_that_is_compiled():
    from tailwater import _tailwater

    package = Path(tailwater.__file__).parent
    assert (package / "py.typed").is_file()
    tree = ast.parse((package / "_tailwater.pyi").read_text())
    told = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inner = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign)]
            told[node.name] = {n.name for n in inner} | set(fields) - {"__init__"}
        elif isinstance(node, ast.FunctionDef):
            told[node.name] = {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.AnnAssign):
            told[node.target.id] = set()
    there = {name: getattr(_tailwater, name) for name in dir(_tailwater) if not name.startswith("_")}
    assert set(told) == set(there)
    for name, value in there.items():
        if isinstance(value, type):
            public = {member for member in vars(value) if not member.startswith("_")}
            assert public == {member for member in told[name] if not member.startswith("_")}, name
        elif callable(value):
            arguments = value.__text_signature__.strip("()").replace("$module, ", "").split(",")
            assert {a.split("=")[0].strip() for a in arguments if a.strip()} == told[name], name
