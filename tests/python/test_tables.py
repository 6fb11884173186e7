"""Tables go to pyarrow, pandas and Polars without being copied."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import tailwater
from conftest import SMALL


@pytest.fixture(scope="module")
def result():
    return tailwater.run(SMALL, sets={"measure.ports": ["hosts"]})


def addresses(table):
    return [buffer.address for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer]


def test_every_buffer_is_where_it_was(result):
    for name, table in result.tables.items():
        one, other = pa.table(table), pa.RecordBatchReader.from_stream(table).read_all()
        assert one.num_rows == len(table) > 0
        # Both are alive: copies would lie in two places.
        assert addresses(one) == addresses(other) and len(addresses(one)) >= len(table.column_names), name


def test_pandas_and_polars_look_at_the_same_memory(result):
    arrow = result.flows.to_pyarrow()
    pandas = result.flows.to_pandas()
    assert all(isinstance(kind, pd.ArrowDtype) for kind in pandas.dtypes)
    of_pandas = pa.Table.from_pandas(pandas, preserve_index=False)
    assert addresses(of_pandas) == addresses(arrow)
    polars = result.flows.to_polars()
    assert isinstance(polars, pl.DataFrame) and polars.columns == arrow.column_names
    # Polars has its own kind of text; numbers stay where they are.
    for name in ["size_bytes", "received_ps", "slowdown"]:
        data = arrow.column(name).chunk(0).buffers()[1].address
        assert polars[name].rechunk().to_arrow().buffers()[1].address == data, name
    assert polars["slowdown"].to_list() == pandas["slowdown"].to_list() == arrow.column("slowdown").to_pylist()


def test_a_table_outlives_its_run():
    table = tailwater.run(SMALL).flows
    arrow = table.to_pyarrow()
    del table
    [tailwater.run(SMALL, sets={"seed": seed}) for seed in range(2, 5)]
    assert arrow.column("flow").to_pylist() == list(range(arrow.num_rows))


def test_a_stream_that_nobody_reads_is_freed(result):
    for _ in range(1000):
        result.flows.__arrow_c_stream__()
        result.flows.__arrow_c_schema__()
    assert pa.schema(result.flows).names == result.flows.column_names


def test_the_tables_are_those_of_the_files(result):
    result.write("here", report=False)
    for name, table in result.tables.items():
        assert pa.table(table).equals(parquet.read_table(f"here/{name}.parquet")), name
