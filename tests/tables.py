"""Recomputes what Tailwater reports from the tables it writes, with NumPy and DuckDB, and runs the code of docs/python.md that
reads files.

usage: tables.py TAILWATER
"""

import csv
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
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
Z = 1.959963984540054
checked = 0


def same(what, reported, expected):
    global checked
    checked += 1
    if reported is None or expected is None:
        assert reported is None and expected is None, f"{what}: {reported} is reported, {expected} expected"
    else:
        assert math.isclose(reported, expected, rel_tol=1e-9, abs_tol=1e-12), f"{what}: {reported} is reported, {expected} expected"


def interval(values, q):
    """Order statistics around a quantile; the definition in docs/results.md."""
    n = len(values)
    half = Z * math.sqrt(n * q * (1 - q))
    low, high = math.floor(n * q - half), math.ceil(n * q + half)
    return (values[low - 1], values[high - 1]) if low >= 1 and high <= n else (None, None)


def mean_end(values, error):
    """An end of the interval of a mean; on a logarithmic scale where all values are positive."""
    mean = float(np.mean(values))
    return mean * math.exp(error / mean) if min(values) > 0 else mean + error


def spread(what, reported, values, least=-math.inf):
    """What is reported of values; no interval of their mean goes below the least that they can be, unless the mean does."""
    values = np.sort(np.asarray(values, dtype=float))
    n = len(values)
    same(f"{what}.count", reported["count"], n)
    same(f"{what}.mean", reported["mean"], float(np.mean(values)) if n else None)
    same(f"{what}.max", reported["max"], float(np.max(values)) if n else None)
    around = reported["interval"]
    for name, q in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)]:
        same(f"{what}.{name}", reported[name], float(np.quantile(values, q)) if n else None)
        ends = around[name] or (None, None)
        for end, expected in zip(ends, interval(values, q)):
            same(f"{what}.interval.{name}", end, expected)
    ends = around["mean"] or (None, None)
    error = Z * float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else None
    for end, sign in zip(ends, (-1, 1)):
        expected = None if error is None else mean_end(values, sign * error)
        if expected is not None and sign < 0:
            expected = max(expected, min(least, float(np.mean(values))))
        same(f"{what}.interval.mean", end, expected)


def by_size(what, reported, sizes, values):
    for bin in reported:
        up_to = math.inf if bin["up_to"] is None else bin["up_to"]
        inside = (sizes > bin["above"]) & (sizes <= up_to)
        spread(f"{what}[{up_to}]", bin["slowdown"], values[inside], least=1.0)


def value(sql):
    return duckdb.sql(sql).fetchall()[0][0]


def column(sql):
    return duckdb.sql(sql).fetchnumpy()


def check_summary(folder):
    summary = json.loads((folder / "summary.json").read_text())
    flows = f"'{folder}/flows.parquet'"
    rows = column(f"SELECT size_bytes, slowdown FROM {flows} WHERE slowdown IS NOT NULL")
    spread("slowdown", summary["slowdown"], rows["slowdown"], least=1.0)
    by_size("slowdown_by_size", summary["slowdown_by_size"], rows["size_bytes"], rows["slowdown"])
    # DuckDB has its own quantiles.
    for name, q in [("p50", 0.5), ("p99", 0.99)]:
        found = value(f"SELECT quantile_cont(slowdown, {q}) FROM {flows}")
        same(f"duckdb slowdown.{name}", summary["slowdown"][name], found)
    acknowledged = f"SELECT slowdown_acknowledged AS s FROM {flows} WHERE slowdown_acknowledged IS NOT NULL"
    spread("slowdown_acknowledged", summary["slowdown_acknowledged"], column(acknowledged)["s"], least=1.0)
    bad = value(f"""
        SELECT count(*) FROM {flows} WHERE abs(slowdown - received_ps / ideal_ps) > 1e-9
            OR abs(slowdown_acknowledged - acknowledged_ps / ideal_acknowledged_ps) > 1e-9
            OR slowdown < 1 OR slowdown_acknowledged < 1""")
    same("slowdowns that are not what their times say", bad, 0)

    for group in summary["groups"]:
        name = group["name"]
        rows = column(f"""SELECT size_bytes, slowdown FROM {flows} WHERE slowdown IS NOT NULL AND "group" = '{name}'""")
        spread(f"{name}.slowdown", group["slowdown"], rows["slowdown"], least=1.0)
        by_size(f"{name}.slowdown_by_size", group["slowdown_by_size"], rows["size_bytes"], rows["slowdown"])
        rows = column(f"""
            SELECT delivered_bytes * 8000.0 / least(coalesce(received_ps, {summary["end_ps"]} - start_ps), {summary["end_ps"]} - start_ps) AS gbps
            FROM {flows} WHERE "group" = '{name}' AND start_ps < {summary["end_ps"]}""")["gbps"]
        spread(f"{name}.throughput", group["throughput_gbps"], rows)
        fair = float(np.sum(rows) ** 2 / (len(rows) * np.sum(rows**2))) if np.any(rows > 0) else None
        same(f"{name}.fairness", group["fairness"], fair)
        same(f"{name}.flows", group["flows"], value(f"""SELECT count(*) FROM {flows} WHERE "group" = '{name}'"""))

    buffers = column(f"SELECT switch, bytes, peak_bytes FROM '{folder}/buffers.parquet'")
    spread("buffer.sampled", summary["buffer"]["sampled"], buffers["bytes"])
    spread("buffer.watermarks", summary["buffer"]["watermarks"], buffers["peak_bytes"])
    for switch in summary["buffer"]["switches"]:
        mine = buffers["switch"] == switch["switch"]
        spread(switch["switch"], switch["sampled"], buffers["bytes"][mine])
        assert switch["peak"] >= max(buffers["peak_bytes"][mine], default=0)

    first = value(f"SELECT min(start_ps) FROM {flows}")
    span = summary["end_ps"] - first
    links = column(f"SELECT *, sent_bytes * 8000.0 / {span} AS gbps FROM '{folder}/links.parquet'")
    use = links["gbps"] / (links["rate_bps"] / 1e9)
    kinds = {"from_hosts": ("host", "switch"), "to_hosts": ("switch", "host"), "between_switches": ("switch", "switch")}
    for name, (a, b) in kinds.items():
        spread(name, summary["utilisation"][name], use[(links["from_kind"] == a) & (links["to_kind"] == b)])
    spread("receivers", summary["utilisation"]["receivers_gbps"], links["gbps"][links["to_kind"] == "host"])
    same("pause.share", summary["pause"]["share"], float(np.mean(links["paused_ps"] / span)))
    assert summary["slowdown"]["count"] > 100, "the example is large enough to say something"


def percentile(values, q):
    """Of sorted values, those of flows that did not finish being infinite; None where it falls on one of these."""
    place = q * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return None if math.isinf(high) else low + (high - low) * (place - math.floor(place))


def check_comparison(folder, stopped):
    """Every count and percentile of `by_size.csv`, out of the flows of the runs."""
    comparison = json.loads((folder / "comparison.json").read_text())
    with open(folder / "by_size.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["scheme"] for row in rows}) == 2
    for row in rows:
        values, times, unfinished = [], [], 0
        for cell in (cell for cell in comparison["cells"] if cell["labels"]["scheme"] == row["scheme"]):
            run = folder / cell["folder"]
            end = json.loads((run / "summary.json").read_text())["end_ps"]
            inside = f"size_bytes > {row['above_bytes']}" + (f" AND size_bytes <= {row['up_to_bytes']}" if row["up_to_bytes"] else "")
            group = f""" AND "group" = '{row["group"]}'""" if row["group"] else ""
            flows = f"'{run}/flows.parquet' WHERE {inside}{group} AND start_ps < {end} AND ideal_ps IS NOT NULL"
            found = duckdb.sql(f"SELECT slowdown, received_ps FROM {flows}").fetchall()
            unfinished += sum(slowdown is None for slowdown, _ in found)
            values += [math.inf if slowdown is None else slowdown for slowdown, _ in found]
            times += [math.inf if slowdown is None else received for slowdown, received in found]
        values.sort()
        times.sort()
        what = f"by_size.csv: {row['scheme']}, {row['group']}, {row['above_bytes']} to {row['up_to_bytes']}"
        same(f"{what}: flows", int(row["flows"]), len(values))
        same(f"{what}: unfinished", int(row["unfinished"]), unfinished)
        for name, q in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)]:
            same(f"{what}: {name}", float(row[name]) if row[name] else None, percentile(values, q))
            time = row[f"time_ps_{name}"]
            same(f"{what}: time_ps_{name}", float(time) if time else None, percentile(times, q))
    assert any(int(row["unfinished"]) for row in rows) == stopped


def run_the_manual(folder):
    text = (ROOT / "docs/python.md").read_text()
    # Those that use the package are run by tests/python.
    pieces = [piece for piece in re.findall(r"```python\n(.*?)```", text, re.S) if "import tailwater" not in piece]
    assert len(pieces) >= 3
    os.chdir(folder)
    for piece in pieces:
        exec(compile(piece, "docs/python.md", "exec"), {})


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results/websearch"
        command = [program, "run", ROOT / "examples/websearch_incast.toml", "--quiet"]
        subprocess.run([*command, "--set", 'measure.ports=["hosts"]', "--out", out], check=True)
        check_summary(out)
        shutil.copytree(out, Path(folder) / "results/runs/one")
        run_the_manual(Path(folder))
        command = [program, "compare", ROOT / "examples/hadoop_incast.toml", "--quiet", "--schemes", "pfc,bfc", "--seeds", "2"]
        for name, sets in [("whole", []), ("stopped", ["--set", "stop=700us"])]:
            out = Path(folder) / name
            subprocess.run([*command, *sets, "--bins", "10KB,1MB", "--store", Path(folder) / "store", "--out", out], check=True)
            check_comparison(out, name == "stopped")
    print(f"{checked} numbers agree")


main()
