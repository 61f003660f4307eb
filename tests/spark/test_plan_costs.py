"""Costs of plans: bytes that scans read, calls of planning, joins that are chosen."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.scan.plan import ScanPlan
from lancelake.spark import error_of, read, write
from lancelake.spark.connector.catalog import LanceCatalog
from lancelake.spark.reading import scan
from lancelake.spark.reading.scan import LanceScan
from lancelake.spark.tasks import read_plan
from lancelake.spark.tasks.read_plan import ReadRequest, read_bytes, scan_plan
from lancelake.storage import location
from lancelake.storage.location import LocalStore
from tests.support.counting_store import CountingStore

ROWS = 4000
WIDTH = 400
FRAGMENTS = 8
IO = Path("/proc/self/io")
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
PLAN_STATISTICS = "spark.sql.cbo.planStats.enabled"
PRUNING = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
SECRET = "hush-hush"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table of narrow columns beside wide ones that do not compress."""
    place = str(tmp_path_factory.mktemp("costs") / "wide.lance")
    chance = random.Random(5)
    wide = pa.array([chance.randbytes(WIDTH) for _ in range(ROWS)])
    small = pa.array([i % 100 for i in range(ROWS)], pa.int32())
    struct = pa.StructArray.from_arrays([small, wide], names=["small", "big"])
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "wide": wide, "st": struct})
    lancelake.write_dataset(table, place, max_rows_per_file=ROWS // FRAGMENTS)
    return place


@pytest.fixture
def frame(spark: SparkSession, path: str) -> DataFrame:
    """Return the table's rows."""
    return spark.read.format("lance").load(path)


def scans(frame: DataFrame) -> list[Any]:
    """Return the scans at the bottom of a physical plan."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    return [leaves.apply(position) for position in range(leaves.size())]


def bytes_read(frame: DataFrame) -> int:
    """Read what the plan's scan reads, in this process, and count the bytes."""
    (scan,) = scans(frame)
    parts = scan.inputPartitions()
    payloads = [bytes(parts.apply(i).pickedPartition()) for i in range(parts.size())]
    before = _read_so_far()
    for payload in payloads:
        for _ in read_bytes(payload):
            pass
    return _read_so_far() - before


def _read_so_far() -> int:
    lines = dict(line.split(": ") for line in IO.read_text().splitlines())
    return int(lines["rchar"])


needs_account = pytest.mark.skipif(not IO.exists(), reason="the system counts no bytes")


@needs_account
@pytest.mark.parametrize(
    ("narrow", "share"),
    [
        (lambda x: x.select("id"), 0.1),
        (lambda x: x.select("st.small"), 0.1),
        (lambda x: x.where("id < 10").select("st.small"), 0.1),
        (lambda x: x.where("st.small = 7").select("id"), 0.1),
        (lambda x: x.groupBy("st.small").count(), 0.1),
        (lambda x: x.orderBy(f.desc("id")).limit(3).select("id"), 0.1),
        (lambda x: x.limit(10), 0.2),
    ],
    ids=["column", "member", "filter", "member in a filter", "aggregate", "first rows", "limit"],
)
def test_a_plan_reads_no_more_than_it_needs(
    frame: DataFrame, narrow: Callable[[DataFrame], DataFrame], share: float
) -> None:
    assert bytes_read(narrow(frame)) < share * bytes_read(frame)


@needs_account
def test_a_whole_table_is_read_once(frame: DataFrame) -> None:
    assert ROWS * WIDTH * 2 < bytes_read(frame) < ROWS * WIDTH * 2 * 1.5


@contextmanager
def setting(spark: SparkSession, key: str, value: object) -> Iterator[None]:
    """Set something for a while."""
    before = spark.conf.get(key)
    spark.conf.set(key, str(value))
    yield
    spark.conf.set(key, str(before))


def test_a_join_side_is_small_by_the_columns_it_reads(
    spark: SparkSession, frame: DataFrame
) -> None:
    large = spark.range(10_000_000)
    with setting(spark, BROADCAST, ROWS * 20):
        narrow = large.join(frame.select("id"), "id")._jdf.queryExecution().sparkPlan().toString()
        wide = large.join(frame, "id")._jdf.queryExecution().sparkPlan().toString()
    assert "BroadcastHashJoin" in narrow
    assert "BroadcastHashJoin" not in wide


def explained_cost(frame: DataFrame) -> str:
    """Return the optimized plan with its statistics."""
    said = io.StringIO()
    with redirect_stdout(said):
        frame.explain(mode="cost")
    return said.getvalue().partition("== Physical Plan ==")[0]


def test_plans_show_row_counts_when_statistics_are_planned(
    spark: SparkSession, frame: DataFrame
) -> None:
    with setting(spark, PLAN_STATISTICS, True):
        assert "rowCount=4.00E+3" in explained_cost(frame.select("id"))
        assert "rowCount=10" in explained_cost(frame.select("id").limit(10))


@pytest.fixture
def star(spark: SparkSession, tmp_path: Path) -> list[str]:
    """Return views of a large table and of two small ones that describe its rows."""
    numbers = pa.array(range(200_000), pa.int64())
    fact = {"d": pa.compute.remainder(numbers, 1000), "e": pa.compute.remainder(numbers, 7)}
    tables = {
        "fact": pa.table({**fact, "v": numbers}),
        "d": pa.table({"d": range(1000), "dn": [f"d{i}" for i in range(1000)]}),
        "e": pa.table({"e": range(7), "en": [f"e{i}" for i in range(7)]}),
    }
    for name, rows in tables.items():
        lancelake.write_dataset(rows, tmp_path / f"{name}.lance")
        read(spark, str(tmp_path / f"{name}.lance")).createOrReplaceTempView(name)
    return list(tables)


@pytest.mark.usefixtures("star")
@pytest.mark.parametrize(
    ("condition", "pruned"),
    [
        ("dn = 'd3'", ["d IN (3)"]),
        ("dn IN ('d3', 'd10') AND en = 'e3'", ["d IN (3, 10)", "e IN (3)"]),
    ],
    ids=["one side", "two sides"],
)
def test_filters_of_small_sides_of_a_star_join_reach_the_scan_of_the_large_side(
    spark: SparkSession, condition: str, pruned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    filter_scan = LanceScan.filter

    def watched(self: LanceScan, predicates: Any) -> None:
        filter_scan(self, predicates)
        seen.append(self.identity())

    monkeypatch.setattr(LanceScan, "filter", watched)
    monkeypatch.setattr(scan, "LEAST_PRUNED_BYTES", 0)
    query = "SELECT count(*), sum(v) FROM fact JOIN d USING (d) JOIN e USING (e) WHERE "
    (row,) = spark.sql(query + condition).collect()
    assert seen
    assert all(text in seen[-1] for text in pruned)
    monkeypatch.undo()
    with setting(spark, PRUNING, False):
        assert [row] == spark.sql(query + condition).collect()


@pytest.mark.usefixtures("star")
def test_a_join_with_all_rows_of_a_table_is_not_pruned(spark: SparkSession) -> None:
    joined = spark.sql("SELECT sum(v) FROM fact JOIN d USING (d)")
    assert "dynamicpruning" not in joined._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.usefixtures("star")
@pytest.mark.parametrize(("few", "pruned"), [(1000, True), (0, False)], ids=["few", "many"])
def test_values_of_a_join_that_are_too_many_do_not_reach_the_scan(
    spark: SparkSession, few: int, pruned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    filter_scan = LanceScan.filter

    def watched(self: LanceScan, predicates: Any) -> None:
        filter_scan(self, predicates)
        seen.append(self.identity())

    monkeypatch.setattr(LanceScan, "filter", watched)
    monkeypatch.setattr(scan, "LEAST_PRUNED_BYTES", 0)
    monkeypatch.setattr(scan, "_FEW_VALUES", few)
    monkeypatch.setattr(scan, "_MOST_VALUES", few)
    spark.sql("SELECT sum(v) FROM fact JOIN d USING (d) WHERE dn = 'd3'").collect()
    assert seen
    assert ("d IN (3)" in seen[-1]) == pruned


@pytest.mark.usefixtures("star")
def test_a_small_scan_is_not_pruned(spark: SparkSession) -> None:
    joined = spark.sql("SELECT sum(v) FROM fact JOIN d USING (d) WHERE dn = 'd3'")
    assert "dynamicpruning" not in joined._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.usefixtures("star")
def test_a_table_is_not_pruned_by_the_values_of_a_join(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "LEAST_PRUNED_BYTES", 0)
    query = (
        "SELECT sum(a.v) FROM (fact a JOIN d USING (d)) JOIN fact b ON a.v = b.v WHERE dn = 'd3'"
    )
    joined = spark.sql(query)
    optimized = joined._jdf.queryExecution().optimizedPlan().toString()
    # The filter on d prunes a; that join could prune b.
    assert optimized.count("dynamicpruning#") == 1
    assert [row[0] for row in joined.collect()] == [sum(range(3, 200_000, 1000))]


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of all calls to stores that are opened from now on."""
    seen: list[str] = []
    real = LocalStore  # type: ignore[attr-defined]

    class Watched(CountingStore):
        def _called(self, call: str, *paths: str) -> None:
            seen.extend(f"{call} {path}" for path in paths)
            super()._called(call, *paths)

    monkeypatch.setattr(location, "LocalStore", lambda *a, **k: Watched(real(*a, **k)))
    return seen


def test_planning_calls_the_store_a_few_times_whatever_the_number_of_fragments(
    spark: SparkSession, path: str, paths: list[str]
) -> None:
    frame = read(spark, path).where("id > 5 AND st.small = 7").select("id")
    planned = [scan.inputPartitions().size() for scan in scans(frame)]
    assert planned == [2]
    assert not [call for call in paths if "data/" in call]
    assert len(paths) <= 3


@pytest.mark.parametrize(
    "query",
    [
        lambda x: x.where("id > 5 AND st.small = 7").select("id"),
        lambda x: x.join(f.broadcast(x.limit(3)).select("id"), "id"),
        lambda x: x.groupBy("st.small").count(),
        lambda x: x.orderBy("id").limit(3),
    ],
    ids=["filter", "join", "aggregate", "first rows"],
)
def test_a_scan_is_planned_once_for_its_partitions_and_its_size(
    frame: DataFrame,
    query: Callable[[DataFrame], DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned: list[ReadRequest] = []

    def counted(request: ReadRequest) -> ScanPlan:
        planned.append(request)
        return scan_plan(request)

    monkeypatch.setattr(read_plan, "scan_plan", counted)
    chosen = query(frame)
    values = [leaf for leaf in scans(chosen) if hasattr(leaf, "inputPartitions")]
    for leaf in values:
        assert leaf.inputPartitions().size()
        assert leaf.scan().estimateStatistics().sizeInBytes().getAsLong() > 0
    assert len(planned) == len(values)


def test_a_query_reads_one_version_though_another_writer_commits(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = warehouse / "pinned" / "t.lance"
    lancelake.write_dataset(pa.table({"id": [1, 2, 3]}), place)
    load = LanceCatalog.loadTable

    def load_then_commit(self: LanceCatalog, *args: Any) -> Any:
        rows = load(self, *args)
        lancelake.write_dataset(pa.table({"id": [9]}), place, mode="append")
        return rows

    monkeypatch.setattr(LanceCatalog, "loadTable", load_then_commit)
    query = "FROM lance.pinned.t a CROSS JOIN lance.pinned.t b"
    frame = spark.sql(
        f"SELECT a.id AS l, b.id AS r {query} WHERE b.id IN (SELECT id FROM lance.pinned.t)"
    )
    rows = sorted(tuple(row) for row in frame.collect())
    # Spark may look for the newest version once more, but then for all parts of the query.
    ids = sorted({left for left, _ in rows})
    assert rows == [(left, right) for left in ids for right in ids]
    assert ids[:3] == [1, 2, 3]
    monkeypatch.undo()
    spark.sql("DROP NAMESPACE lance.pinned CASCADE")


def shown(frame: DataFrame) -> str:
    """Return everything that a plan says of itself."""
    said = io.StringIO()
    with redirect_stdout(said):
        for mode in ("extended", "formatted", "cost", "codegen"):
            frame.explain(mode=mode)
    execution = frame._jdf.queryExecution()
    return f"{said.getvalue()} {execution.toString()} {execution.logical().toJSON()}"


def test_secrets_are_in_nothing_that_a_plan_shows(spark: SparkSession, path: str) -> None:
    options = {"aws_secret_access_key": SECRET, "storage.token": SECRET}
    frame = read(spark, path, **options)
    frame.createOrReplaceTempView("secretive")
    queries = [frame, frame.where("id = 7"), spark.sql("SELECT count(*) FROM secretive")]
    assert SECRET not in "".join(shown(query) for query in queries)


@pytest.mark.parametrize(
    "options", [{"vresion": 1}, {"version": 99}, {"tag": "nope"}, {"batchRows": "x"}]
)
def test_secrets_are_not_in_errors(spark: SparkSession, path: str, options: dict[str, Any]) -> None:
    with pytest.raises(Exception) as caught:
        read(spark, path, **options, aws_secret_access_key=SECRET).collect()
    error = error_of(caught.value)
    assert error is not None
    assert SECRET not in f"{caught.value!r} {error.to_json()}"


def test_secrets_are_not_in_errors_of_writes(spark: SparkSession, path: str) -> None:
    with pytest.raises(Exception) as caught:
        write(
            spark.range(1).selectExpr("id AS other"), path, "append", aws_secret_access_key=SECRET
        )
    assert SECRET not in repr(caught.value)
