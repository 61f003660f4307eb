"""SQL queries return the results of pylance, and read only what they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError, LanceTableError
from lancelake.scan.plan import ScanPlan
from lancelake.scan.stream import run
from lancelake.table import sql_query
from tests.support.compare import assert_same_table

NAN = float("nan")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of many types, with deleted rows, in several fragments."""
    path = tmp_path_factory.mktemp("sql") / "t.lance"
    count = 200
    rows = pa.table(
        {
            "i": pa.array(range(count)),
            "f": pa.array([NAN if k % 50 == 7 else k / 8 for k in range(count)]),
            "Name": pa.array([None if k % 9 == 0 else f"name {k % 10}" for k in range(count)]),
            "s": pa.array([{"a": k, "b": str(k)} for k in range(count)]),
            "l": pa.array([[k, k + 1] for k in range(count)]),
            "d": pa.array([f"g{k % 3}" for k in range(count)]).dictionary_encode(),
            "j": pa.array([f'{{"k": {k}}}' for k in range(count)], pa.json_(pa.utf8())),
        }
    )
    made = official.write_dataset(rows, path, max_rows_per_file=40, data_storage_version="2.1")
    made.delete("i % 11 = 3")
    return path


QUERIES = """
SELECT * FROM dataset ORDER BY i
SELECT i FROM dataset WHERE i > 190
SELECT i, f FROM DATASET WHERE f > 20 ORDER BY i
SELECT i FROM dataset WHERE f > 1000 ORDER BY i
SELECT i FROM dataset WHERE f = f AND i < 20 ORDER BY i
SELECT i FROM dataset WHERE "Name" LIKE '%3' ORDER BY i
SELECT i FROM dataset WHERE `Name` IS NULL ORDER BY i
SELECT i FROM dataset WHERE "Name" NOT IN ('name 1', 'name 2') ORDER BY i
SELECT i FROM dataset WHERE "Name" NOT IN ('name 1', NULL) ORDER BY i
SELECT i FROM dataset WHERE NOT (i IN (1, 2)) AND i < 8 ORDER BY i
SELECT s.a FROM dataset WHERE s['b'] = '17'
SELECT s FROM dataset WHERE s.a BETWEEN 5 AND 7 ORDER BY i
SELECT l[1] AS first FROM dataset WHERE array_length(l) = 2 AND i < 5 ORDER BY i
SELECT d, count(*) AS n, sum(i), max(f) FROM dataset WHERE i < 100 GROUP BY d ORDER BY d
SELECT count(*) FROM dataset
SELECT count(*) FROM dataset WHERE i >= 100
SELECT count("Name"), count(DISTINCT "Name") FROM dataset
SELECT i FROM dataset ORDER BY i DESC LIMIT 3
SELECT i FROM dataset ORDER BY i LIMIT 3 OFFSET 5
SELECT a.i, b.i AS other FROM dataset a JOIN dataset b ON a.i = b.i + 1 WHERE a.i < 9 ORDER BY 1
SELECT count(*) FROM dataset a LEFT JOIN dataset b ON a.i = b.i AND b.f > 5 WHERE b.i IS NULL
SELECT i FROM dataset WHERE i IN (SELECT i + 1 FROM dataset WHERE f < 1) ORDER BY i
SELECT i FROM dataset WHERE i > (SELECT avg(i) + 90 FROM dataset) ORDER BY i
SELECT i FROM dataset WHERE i < 5 AND i * 40 > (SELECT max(i) - 50 FROM dataset) ORDER BY i
SELECT i, (SELECT max(i) FROM dataset) AS m FROM dataset WHERE i < 3 ORDER BY i
SELECT i FROM dataset a WHERE EXISTS (SELECT 1 FROM dataset b WHERE b.i = a.i * 60) ORDER BY i
SELECT i FROM dataset a WHERE i < (SELECT count(*) FROM dataset b WHERE b.d = a.d) ORDER BY i
SELECT i FROM (SELECT * FROM dataset ORDER BY i LIMIT 10) WHERE i > 5 ORDER BY i
SELECT count(*) FROM (SELECT * FROM dataset LIMIT 10) WHERE i < 500
SELECT count(*) FROM (SELECT * FROM dataset LIMIT 10) a, (SELECT * FROM dataset LIMIT 9) b
SELECT i FROM dataset WHERE f <> f OR f < 0.2 ORDER BY i
SELECT i FROM dataset WHERE f > 20 AND s.a < 170 AND upper("Name") LIKE '%5' ORDER BY i LIMIT 4
SELECT i FROM dataset WHERE d = 'g1' AND i < 20 ORDER BY i
SELECT i FROM dataset WHERE i < 3 UNION ALL SELECT i FROM dataset WHERE i > 197 ORDER BY i
WITH few AS (SELECT i FROM dataset WHERE i < 30) SELECT max(i) FROM few
SELECT i, row_number() OVER (ORDER BY i DESC) AS r FROM dataset ORDER BY r LIMIT 2
SELECT CASE WHEN i < 2 THEN 'low' ELSE 'high' END AS c, count(*) FROM dataset GROUP BY 1 ORDER BY 1
SELECT upper("Name") AS u FROM dataset WHERE i = 4
SELECT i FROM dataset WHERE 1 = 0
SELECT 1 AS one
SELECT j FROM dataset WHERE json_get_int(j, 'k') = 12
SELECT json_extract(j, '$.k') AS k, json_exists(j, '$.z') AS z FROM dataset WHERE i < 3 ORDER BY i
SELECT i FROM dataset WHERE json_extract(j, '$.k') = '21' OR i = 199 ORDER BY i
""".strip().splitlines()


def result(module: Any, path: Path, query: str) -> pa.Table:
    """Run a query."""
    read: pa.RecordBatchReader = module.dataset(path).sql(query).build().to_stream_reader()
    return read.read_all()


@pytest.mark.parametrize("query", QUERIES)
def test_results_are_the_same(path: Path, query: str) -> None:
    assert_same_table(result(lance, path, query), result(official, path, query))


OPERANDS = st.sampled_from(["i", "f", '"Name"', "s.a", "d"])
VALUES = {
    "i": ["3", "100", "-1"],
    "f": ["1.5", "20", "'NaN'::double", "0"],
    '"Name"': ["'name 3'", "''", "'name 7'"],
    "s.a": ["17", "150"],
    "d": ["'g1'", "'zz'"],
}


@st.composite
def simple(draw: st.DrawFn) -> str:
    """Draw a condition on one column."""
    column = draw(OPERANDS)
    value = st.sampled_from(VALUES[column])
    match draw(st.sampled_from(["compare", "in", "between", "null"])):
        case "compare":
            sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            return f"{column} {sign} {draw(value)}"
        case "in":
            items = draw(st.lists(value | st.just("NULL"), min_size=1, max_size=3))
            return f"{column} {draw(st.sampled_from(['IN', 'NOT IN']))} ({', '.join(items)})"
        case "between":
            return f"{column} BETWEEN {draw(value)} AND {draw(value)}"
        case _:
            return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"


CONDITIONS = st.recursive(
    simple(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda c: f"NOT ({c})"),
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(condition=CONDITIONS)
def test_any_condition_keeps_the_same_rows(path: Path, condition: str) -> None:
    query = f"SELECT i FROM dataset WHERE {condition} ORDER BY i"
    assert_same_table(result(lance, path, query), result(official, path, query))
    joined = f"SELECT a.i FROM dataset a JOIN dataset b ON a.i = b.i WHERE a.i IN ({query})"
    ours = sorted(result(lance, path, joined).column("i").to_pylist())
    assert ours == sorted(result(official, path, query).column("i").to_pylist())


def test_text_has_the_type_that_tables_have(path: Path) -> None:
    query = 'SELECT substr("Name", 2, 3) AS p FROM dataset WHERE i = 4'
    assert result(lance, path, query).schema == pa.schema([("p", pa.string())])


def test_rows_without_an_order_come_in_the_order_of_the_table(path: Path) -> None:
    found = result(lance, path, "SELECT i FROM dataset WHERE f < 20").column("i").to_pylist()
    assert found == sorted(found)


def test_batches_can_be_had_at_once(path: Path) -> None:
    query = "SELECT i FROM dataset WHERE i > 190 ORDER BY i"
    batches = lance.dataset(path).sql(query).build().to_batch_records()
    theirs = official.dataset(path).sql(query).build().to_batch_records()
    assert [b.to_pydict() for b in batches] == [b.to_pydict() for b in theirs]
    assert lance.dataset(path).sql("SELECT i FROM dataset WHERE i > 999").build() is not None


def test_ids_and_addresses_are_columns_when_asked_for(path: Path) -> None:
    query = "SELECT *, _rowaddr % 7 AS r FROM t WHERE _rowid > 100 ORDER BY i LIMIT 3"
    tables = [
        module.dataset(path).sql(query).table_name("t").with_row_id().with_row_addr()
        for module in (official, lance)
    ]
    theirs, ours = (builder.build().to_stream_reader().read_all() for builder in tables)
    assert_same_table(ours, theirs)


REFUSED = """
SELECT nope FROM dataset
SELECT Name FROM dataset
SELECT _rowid FROM dataset
SELEC i FROM dataset
SELECT i FROM other
SELECT i FROM dataset; SELECT 1
INSERT INTO dataset SELECT * FROM dataset
DELETE FROM dataset
DROP TABLE dataset
CREATE TABLE x AS SELECT 1
CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/'
COPY dataset TO 'x.csv'
SET datafusion.execution.batch_size = 1
SELECT i / 0 FROM dataset
SELECT json_get_int(j, 'k') FROM dataset WHERE json_get_bool(j, 'k')
""".strip().splitlines()


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_no_question_is_refused(path: Path, query: str) -> None:
    with pytest.raises(InvalidExpressionError) as raised:
        result(lance, path, query)
    assert isinstance(raised.value, ValueError)
    assert "datafusion" not in type(raised.value).__module__


class Watched:
    """Keeps the plans of the scans that queries make, and how many rows they handed over."""

    def __init__(self) -> None:
        self.plans: list[ScanPlan] = []
        self.rows = 0

    def run(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        """Run a plan."""
        self.plans.append(plan)
        for batch in run(plan):
            self.rows += batch.num_rows
            yield batch

    @property
    def columns(self) -> set[str]:
        """Columns that the scans read for the query."""
        return {output.name for plan in self.plans for output in plan.spec.outputs}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Watch the scans of queries."""
    watched = Watched()
    monkeypatch.setattr(sql_query, "run", watched.run)
    return watched


PUSHED = {
    "SELECT i FROM dataset WHERE f > 24.5 AND f < 1000": ({"i"}, 3),
    "SELECT i FROM dataset WHERE \"Name\" LIKE '%3' AND i < 50": ({"i", "Name"}, 4),
    "SELECT f FROM dataset WHERE s['a'] = 17": ({"f", "s"}, 1),
    "SELECT i FROM dataset WHERE json_get_int(j, 'k') = 12": ({"i", "j"}, 1),
    "SELECT count(*) FROM dataset": (set(), 182),
    'SELECT "Name" FROM dataset LIMIT 5': ({"Name"}, 5),
    "SELECT i FROM dataset WHERE i = 1 OR i = 2": ({"i"}, 2),
    "SELECT a.i FROM dataset a JOIN dataset b ON a.i = b.i WHERE a.i < 2 AND b.i < 5": ({"i"}, 4),
    "SELECT i FROM dataset WHERE i < 2 UNION ALL SELECT i FROM dataset WHERE i = 7": ({"i"}, 6),
    "SELECT i FROM dataset WHERE random() < 2 AND i < 3": ({"i"}, 3),
    "SELECT i FROM dataset WHERE random() < 2": ({"i"}, 182),
    "SELECT i FROM dataset WHERE i < 2 AND i > (SELECT min(i) FROM dataset)": ({"i"}, 364),
}


@pytest.mark.parametrize("query", PUSHED)
def test_only_rows_and_columns_that_are_needed_are_read(
    path: Path, watched: Watched, query: str
) -> None:
    columns, rows = PUSHED[query]
    result(lance, path, query)
    assert watched.columns == columns
    assert watched.rows == rows


def test_a_column_that_is_not_asked_for_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ds = official.write_dataset(pa.table({"i": range(10)}), path)
    first = {file.name for file in (path / "data").iterdir()}
    ds.add_columns({"wide": "i * 2"})
    (added,) = (file for file in (path / "data").iterdir() if file.name not in first)
    added.unlink()
    assert result(lance, path, "SELECT sum(i) AS n FROM dataset").to_pydict() == {"n": [45]}
    with pytest.raises(LanceTableError, match=r"\.lance"):
        result(lance, path, "SELECT sum(wide) FROM dataset")


def test_a_query_stays_with_its_version(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    official.write_dataset(pa.table({"i": [1, 2]}), path)
    ds = lance.dataset(path)
    query = ds.sql("SELECT count(*) AS n FROM dataset").build()
    official.write_dataset(pa.table({"i": [3]}), path, mode="append")
    assert query.to_batch_records()[0].to_pydict() == {"n": [2]}
    assert query.to_batch_records()[0].to_pydict() == {"n": [2]}


def test_a_stream_can_be_left_early(path: Path) -> None:
    query = "SELECT a.i FROM dataset a, dataset b WHERE a.i + b.i < 300"
    reader = lance.dataset(path).sql(query).batch_size(16).build().to_stream_reader()
    assert reader.read_next_batch().num_rows <= 16
    reader.close()


def test_many_scans_at_once_do_not_wait_for_each_other(path: Path) -> None:
    names = "abcdefgh"
    tables = ", ".join(f"dataset {name}" for name in names)
    same = " AND ".join(f"a.i = {name}.i AND {name}.f < 2" for name in names[1:])
    query = f"SELECT count(*) AS n FROM {tables} WHERE {same}"
    assert result(lance, path, query).to_pydict() == result(official, path, query).to_pydict()


def test_the_plan_says_what_the_scan_filters(path: Path) -> None:
    text = lance.dataset(path).sql("SELECT i FROM dataset WHERE f > 3").build().explain_plan()
    assert "LanceRead" in text
    assert "Filter: __version_rows.f > Float64(3)" in text or "Filter: f > Float64(3)" in text


def test_a_condition_does_not_pass_a_limit(path: Path) -> None:
    query = "SELECT count(*) AS n FROM (SELECT i FROM dataset LIMIT 10) WHERE i >= 5"
    assert result(lance, path, query).to_pydict() == {"n": [6]}
    twice = "SELECT count(*) AS n FROM (SELECT i FROM dataset LIMIT 10) a, dataset b WHERE a.i >= 5"
    assert result(lance, path, twice).to_pydict() == {"n": [6 * 182]}
    skipped = "SELECT a.i FROM (SELECT i FROM dataset OFFSET 100) a, dataset b WHERE a.i < 115"
    assert len(result(lance, path, f"{skipped} AND b.i = 0")) == 4


def test_sorting_can_spill_to_disk(path: Path) -> None:
    text = lance.dataset(path).sql("SELECT * FROM dataset ORDER BY f").build().explain_plan()
    assert "SortExec" in text
    assert "TopK" not in text


def test_a_join_that_does_not_fit_into_memory_is_sorted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = sql_query._context
    plans: list[bool] = []

    def short(request: sql_query.SqlRequest, *, spills: bool) -> Any:
        plans.append(spills)
        monkeypatch.setattr(sql_query, "_MEMORY_BYTES", 512 << 20 if spills else 1 << 10)
        return context(request, spills=spills)

    monkeypatch.setattr(sql_query, "_context", short)
    query = 'SELECT count(*) AS n FROM dataset a JOIN dataset b ON a."Name" = b."Name"'
    found = result(lance, path, query)
    assert plans[-1]
    assert found.to_pydict() == result(official, path, query).to_pydict()


def test_blobs_can_be_read(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([pa.array([b"ab", None, b""], pa.large_binary())], schema=pa.schema([blob]))
    official.write_dataset(rows, tmp_path / "t.lance", data_storage_version="2.0")
    query = "SELECT b, octet_length(CAST(b AS string)) AS n FROM dataset WHERE b IS NOT NULL"
    found = lance.dataset(tmp_path / "t.lance").sql(query).blob_handling("all_binary").build()
    assert found.to_stream_reader().read_all().to_pydict() == {"b": [b"ab", b""], "n": [2, 0]}


def test_a_query_that_would_overflow_the_stack_is_refused(path: Path) -> None:
    types = "[]" * 20_000
    with pytest.raises(InvalidExpressionError, match="chains more than"):
        lance.dataset(path).sql(
            f"SELECT CAST(i AS INT{types}) FROM dataset"
        ).build().to_batch_records()
