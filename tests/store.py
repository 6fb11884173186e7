"""Runs the code of docs/sweep.md over the store of examples/sweeps/buffer.toml, and holds its tables against each other.

usage: store.py TAILWATER
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
tailwater = Path(sys.argv[1]).resolve()
with tempfile.TemporaryDirectory() as desk:
    os.chdir(desk)
    shutil.copytree(ROOT / "examples", "examples")
    subprocess.run([tailwater, "sweep", "examples/sweeps/buffer.toml", "--quiet"], check=True)

    pieces = re.findall(r"```python\n(.*?)```", (ROOT / "docs/sweep.md").read_text(), re.S)
    assert len(pieces) == 2, pieces
    for piece in pieces:
        exec(piece, {})

    # Each run's own summary says what its row says.
    runs = pl.read_parquet("results/sweep-buffer/runs.parquet")
    assert runs.height == 144 and runs["digest"].n_unique() == 144
    assert runs["load.0.load"].dtype == pl.Float64 and runs["switch.buffer"].dtype == pl.String
    assert sorted(runs["switch.buffer.number"].unique().to_list()) == [1e6, 2e6, 4e6]
    for row in runs.iter_rows(named=True):
        folder = Path("results/runs") / row["digest"]
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["seed"], summary["ending"]) == (row["seed"], row["ending"])
        assert math.isclose(summary["slowdown"]["p99"], row["slowdown_p99"], rel_tol=1e-12), row
        assert summary["buffer"]["peak"] == row["peak_buffer_bytes"]

    # The table has their means, and the store's flows give the same tails by way of the join.
    table = pl.read_csv("results/sweep-buffer/table.csv")
    means = runs.group_by("scheme", "switch.buffer", "load.0.load").agg(pl.col("slowdown_p99").mean().alias("mean"))
    both = table.join(means, on=["scheme", "switch.buffer", "load.0.load"])
    assert both.height == 18
    for row in both.iter_rows(named=True):
        assert math.isclose(row["slowdown_p99"], row["mean"], rel_tol=1e-12), row
    joined = duckdb.sql("""
        SELECT digest, any_value(slowdown_p99), quantile_cont(slowdown, 0.99)
        FROM read_parquet('results/runs/*/flows.parquet', filename = true) AS flows
        JOIN 'results/sweep-buffer/runs.parquet' AS runs ON runs.digest = split_part(flows.filename, '/', -2)
        GROUP BY digest
    """).fetchall()
    assert len(joined) == 144
    for digest, reported, computed in joined:
        assert math.isclose(reported, computed, rel_tol=1e-9), digest
print("the store reads as one dataset: 144 runs, and what the page says works")
