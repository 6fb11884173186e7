"""Executes a notebook from its beginning to its end, as a person would; any exception of a cell is one.

usage: notebook.py NOTEBOOK [OUT]
"""

import sys
import tempfile

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
with tempfile.TemporaryDirectory() as folder:
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
shown = sum("text/html" in data or "image/svg+xml" in data for cell in cells for data in (o.get("data", {}) for o in cell.outputs))
print(f"{len(cells)} cells, {shown} tables and figures")
assert shown >= 5, "cells show something"
if len(sys.argv) > 2:
    nbformat.write(notebook, sys.argv[2])
