"""Bad input: one line says what happened, in which table and version, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.errors import (
    AlreadyExistsError,
    CorruptTableError,
    InvalidExpressionError,
    InvalidRequestError,
    LanceTableError,
    NotFoundError,
    RefNotFoundError,
    SchemaMismatchError,
    StorageDeniedError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.proto import table_pb2
from lancelake.spark import LanceTable, error_of, read, write
from tests.support.table_surgery import edit_manifest

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
UNKNOWN_FEATURE = 1 << 40


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with tables, and the session."""

    spark: SparkSession
    folder: Path

    @property
    def path(self) -> str:
        """The table `lance.shop.orders`: two versions, the tag `first`, the branch `trial`."""
        return str(self.folder / "bad" / "orders.lance")

    def at(self, name: str) -> str:
        """Return a path in the folder."""
        return str(self.folder / "bad" / name)

    def load(self, path: str | None = None, **options: object) -> None:
        """Read a table."""
        reader = self.spark.read.format("lance").options(**options)  # type: ignore[arg-type]
        reader.load(path or self.path).collect()

    def rows(self, *rows: tuple[object, ...], schema: str = "id long, name string") -> DataFrame:
        """Return rows to write."""
        return self.spark.createDataFrame(list(rows) or [(9, "z")], schema)

    def save(
        self, frame: DataFrame, mode: str = "append", path: str | None = None, **options: object
    ) -> None:
        """Write rows."""
        writer = frame.write.format("lance").mode(mode).options(**options)  # type: ignore[arg-type]
        writer.save(path or self.path)

    def sql(self, query: str) -> None:
        """Run a query about the table `{t}`."""
        self.spark.sql(query.replace("{t}", "lance.bad.orders")).collect()

    @property
    def table(self) -> LanceTable:
        """The table in Python."""
        return LanceTable.forPath(self.spark, self.path)


@pytest.fixture(scope="module")
def place(spark: SparkSession, warehouse: Path) -> Iterator[Place]:
    """Return tables that are sound and tables that are not."""
    result = Place(spark, warehouse)
    data = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, schema=SCHEMA)
    table = lancelake.write_dataset(data, result.path)
    table.tags.create("first", 1)
    table.create_branch("trial", 1)
    lancelake.write_dataset(data.slice(0, 1), result.path, mode="append")
    _make_unsound(result)
    yield result
    spark.sql("DROP NAMESPACE lance.bad CASCADE")


def _make_unsound(place: Place) -> None:
    data = pa.table({"id": [1]})
    for name in ("future", "lost", "cleaned"):
        lancelake.write_dataset(data, place.at(f"{name}.lance"))
    edit_manifest(Path(place.at("future.lance")), _need_unknown_feature)
    for file in Path(place.at("lost.lance"), "data").iterdir():
        file.unlink()
    cleaned = lancelake.write_dataset(data, place.at("cleaned.lance"), mode="overwrite")
    cleaned.cleanup_old_versions(older_than=timedelta(0))
    Path(place.at("plain")).mkdir()
    Path(place.at("plain"), "notes.txt").write_text("no table")


def _need_unknown_feature(manifest: table_pb2.Manifest) -> None:
    manifest.reader_feature_flags |= UNKNOWN_FEATURE
    manifest.writer_feature_flags |= UNKNOWN_FEATURE


Act = Callable[[Place], object]
CASES: dict[str, tuple[Act, type[LanceTableError], tuple[str, ...]]] = {
    "a missing path": (
        lambda p: p.load(p.at("nothing.lance")),
        TableNotFoundError,
        ("not a Lance table", "nothing.lance"),
    ),
    "no path at all": (
        lambda p: p.spark.read.format("lance").load(),
        InvalidRequestError,
        ("no path was specified", "Set the path of the table"),
    ),
    "a folder that is no table": (
        lambda p: p.load(p.at("plain")),
        TableNotFoundError,
        ("not a Lance table", "plain"),
    ),
    "a missing path in SQL": (
        lambda p: p.sql(f"SELECT * FROM lance.`{p.at('nothing.lance')}`"),
        TableNotFoundError,
        ("not a Lance table", "nothing.lance"),
    ),
    "a misspelt option": (
        lambda p: p.load(vresion=1),
        InvalidRequestError,
        ("unknown option vresion", "orders.lance", "Did you mean version?"),
    ),
    "a misspelt option of a write": (
        lambda p: p.save(p.rows(), maxRowPerFile=3),
        InvalidRequestError,
        ("unknown option maxRowPerFile", "Did you mean maxRowsPerFile?"),
    ),
    "a misspelt option in SQL": (
        lambda p: p.sql("SELECT * FROM {t} WITH (`batchrow`='3')"),
        InvalidRequestError,
        ("unknown option", "Did you mean batchRows?"),
    ),
    "a misspelt storage option": (
        lambda p: p.load(**{"storage.aws_regoin": "x"}),
        InvalidRequestError,
        ("unknown storage option 'aws_regoin'", "Did you mean aws_region?"),
    ),
    "a misspelt storage option of a write": (
        lambda p: p.save(p.rows(), **{"storage.alow_http": "x"}),
        InvalidRequestError,
        ("unknown storage option 'alow_http'", "Did you mean allow_http?"),
    ),
    "an append in another version of data files": (
        lambda p: p.save(p.rows(), dataStorageVersion="2.2"),
        InvalidRequestError,
        ("data files of this table have format version 2.1", "orders.lance"),
    ),
    "rows replaced in another version of data files": (
        lambda p: write(
            p.rows((1, "z")), p.path, "overwrite", replaceWhere="id = 1", dataStorageVersion="2.2"
        ),
        InvalidRequestError,
        ("data files of this table have format version 2.1", "orders.lance"),
    ),
    "stable row ids for a table without": (
        lambda p: p.save(p.rows(), stableRowIds=True),
        InvalidRequestError,
        ("this table has no stable row ids", "orders.lance", "Omit stableRowIds"),
    ),
    "a version that is no number": (
        lambda p: p.load(version="abc"),
        InvalidRequestError,
        ("version must be an integer, not 'abc'", "orders.lance"),
    ),
    "a negative version": (
        lambda p: p.load(version="-1"),
        InvalidRequestError,
        ("version must be an integer, not '-1'",),
    ),
    "batches of no rows": (
        lambda p: p.load(batchRows=0),
        InvalidRequestError,
        ("batchRows must be at least 1", "orders.lance"),
    ),
    "files of no rows": (
        lambda p: p.save(p.rows(), maxRowsPerFile=0),
        InvalidRequestError,
        ("maxRowsPerFile must be at least 1",),
    ),
    "a flag that is neither true nor false": (
        lambda p: p.save(p.rows(), mergeSchema="maybe"),
        InvalidRequestError,
        ("mergeSchema must be true or false, not 'maybe'",),
    ),
    "two versions at once": (
        lambda p: p.load(version=1, tag="first"),
        InvalidRequestError,
        ("version and tag cannot be combined", "Set only one"),
    ),
    "a version of data files that is not known": (
        lambda p: p.save(p.rows(), path=p.at("new.lance"), dataStorageVersion="9.9"),
        UnsupportedError,
        ("Unknown Lance storage version: 9.9",),
    ),
    "a version that is not there": (
        lambda p: p.load(version=77),
        VersionNotFoundError,
        ("version 77 was not found; the latest is 2", "orders.lance"),
    ),
    "a version that is not there in SQL": (
        lambda p: p.sql("SELECT * FROM {t} VERSION AS OF 77"),
        VersionNotFoundError,
        ("version 77 was not found; the latest is 2", "orders.lance"),
    ),
    "a version that was cleaned up": (
        lambda p: p.load(p.at("cleaned.lance"), version=1),
        VersionNotFoundError,
        (
            "version 1 was not found",
            "The oldest version is 2: those before it were removed by cleanup",
        ),
    ),
    "a misspelt tag": (
        lambda p: p.load(tag="frist"),
        RefNotFoundError,
        ("tag frist does not exist", "orders.lance", "Did you mean first?"),
    ),
    "a misspelt tag in SQL": (
        lambda p: p.sql("SELECT * FROM {t} VERSION AS OF 'frist'"),
        RefNotFoundError,
        ("tag frist does not exist", "Did you mean first?"),
    ),
    "a branch that is taken for a tag in SQL": (
        lambda p: p.sql("SELECT * FROM {t} VERSION AS OF 'trial'"),
        RefNotFoundError,
        ("tag trial does not exist: trial is a branch", "Read it as lance.bad.orders.branch_trial"),
    ),
    "several paths": (
        lambda p: p.spark.read.format("lance").load([p.path, p.path]),
        InvalidRequestError,
        ("one path can be loaded at a time", "unionByName"),
    ),
    "a misspelt branch": (
        lambda p: p.load(branch="tiral"),
        RefNotFoundError,
        ("branch tiral does not exist", "Did you mean trial?"),
    ),
    "a branch that is nothing like another": (
        lambda p: p.sql("SELECT * FROM {t}.branch_zzz"),
        RefNotFoundError,
        ("branch zzz does not exist", "Known branches: trial"),
    ),
    "a write to a misspelt branch": (
        lambda p: p.save(p.rows(), branch="tiral"),
        RefNotFoundError,
        ("branch tiral does not exist", "Did you mean trial?"),
    ),
    "a time that is none": (
        lambda p: p.load(timestamp="some day"),
        InvalidRequestError,
        ("'some day' is not a valid time", "orders.lance", "Write it as 2026-01-31"),
    ),
    "a time before the table": (
        lambda p: p.load(timestamp="2001-01-01"),
        VersionNotFoundError,
        ("earlier than the first version", "orders.lance"),
    ),
    "a time before the table in SQL": (
        lambda p: p.sql("SELECT * FROM {t} TIMESTAMP AS OF '2001-01-01'"),
        VersionNotFoundError,
        ("earlier than the first version", "orders.lance"),
    ),
    "an unknown feature": (
        lambda p: p.load(p.at("future.lance")),
        UnsupportedError,
        ("future.lance", "Upgrade lancelake"),
    ),
    "a write to a table with an unknown feature": (
        lambda p: p.save(p.rows((1,), schema="id long"), path=p.at("future.lance")),
        UnsupportedError,
        ("future.lance", "Upgrade lancelake"),
    ),
    "a lost data file": (
        lambda p: p.load(p.at("lost.lance")),
        CorruptTableError,
        ("is missing", "lost.lance, version 1", "lancelake check"),
    ),
    "a column that is missing": (
        lambda p: p.save(p.rows(("z",), schema="name string")),
        SchemaMismatchError,
        ("column id of type int64 is missing", "orders.lance, version 2"),
    ),
    "a column too many": (
        lambda p: p.save(p.rows((9, "z", 1), schema="id long, name string, x int")),
        SchemaMismatchError,
        ("does not have: x", "orders.lance, version 2", "mergeSchema=true"),
    ),
    "rows without columns": (
        lambda p: p.save(p.rows().select(), path=p.at("new.lance")),
        SchemaMismatchError,
        ("the data has no columns", "new.lance"),
    ),
    "text that is not UTF-8": (
        lambda p: p.save(p.spark.sql("SELECT 9L id, CAST(X'FF00' AS STRING) name")),
        SchemaMismatchError,
        ("column name has a string that is not UTF-8", "orders.lance"),
    ),
    "text that is not UTF-8 in an insert": (
        lambda p: p.sql("INSERT INTO {t} SELECT 9, CAST(X'FF00' AS STRING)"),
        SchemaMismatchError,
        ("column name has a string that is not UTF-8", "orders.lance"),
    ),
    "text that is not UTF-8 in an update": (
        lambda p: p.sql("UPDATE {t} SET name = CAST(X'FF00' AS STRING) WHERE id = 1"),
        SchemaMismatchError,
        ("column name has a string that is not UTF-8", "orders.lance"),
    ),
    "text that is not UTF-8 in a merge": (
        lambda p: p.sql(
            "MERGE INTO {t} t USING (SELECT 9L id, CAST(X'FF00' AS STRING) name) s "
            "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
        ),
        SchemaMismatchError,
        ("column name has a string that is not UTF-8", "orders.lance"),
    ),
    "a choice about text that is not known": (
        lambda p: p.save(p.rows(), invalidUtf8="maybe"),
        InvalidRequestError,
        ("invalidUtf8 must be one of error, replace", "orders.lance"),
    ),
    "other columns on overwrite": (
        lambda p: p.save(p.rows((9, 1), schema="id long, x int"), mode="overwrite"),
        SchemaMismatchError,
        ("does not have: x", "orders.lance, version 2", "overwriteSchema=true"),
    ),
    "values of another type": (
        lambda p: p.save(p.rows(("x", "y"), schema="id string, name string")),
        SchemaMismatchError,
        ("Cannot safely cast `id`", "orders.lance", "Cast the column"),
    ),
    "a null where none may be": (
        lambda p: p.save(p.rows((None, "y"))),
        SchemaMismatchError,
        ("column id contains null values", "orders.lance", "Fill in the nulls"),
    ),
    "a table that exists": (
        lambda p: p.save(p.rows(), mode="error"),
        AlreadyExistsError,
        ("already exists", "orders.lance", 'mode("append")'),
    ),
    "a mode that is not known": (
        lambda p: write(p.rows(), p.path, "appendd"),
        InvalidRequestError,
        ("unknown save mode 'appendd'", "Did you mean append?"),
    ),
    "a type that tables lack": (
        lambda p: p.save(p.spark.sql("SELECT parse_json('1') v"), path=p.at("new.lance")),
        UnsupportedError,
        ("column v has type variant", "Cast the column"),
    ),
    "a type that tables lack in SQL": (
        lambda p: p.sql("CREATE TABLE lance.bad.v (id bigint, v interval year to month)"),
        UnsupportedError,
        ("column v has type interval year to month", "Cast the column"),
    ),
    "a condition about no column": (
        lambda p: p.save(p.rows(), mode="overwrite", replaceWhere="idd = 3"),
        InvalidExpressionError,
        ("'idd = 3' cannot be parsed", "orders.lance", "[`id`, `name`]"),
    ),
    "a condition for a mode without one": (
        lambda p: p.save(p.rows(), replaceWhere="id = 3"),
        InvalidRequestError,
        ("replaceWhere needs mode", "orders.lance"),
    ),
    "partitions by columns": (
        lambda p: p.rows().write.format("lance").partitionBy("id").save(p.at("new.lance")),
        UnsupportedError,
        ("do not support partitioning by columns", "Omit partitionBy"),
    ),
    "a place that may not be written": (
        lambda p: p.save(p.rows(), path="/sys/new.lance"),
        StorageDeniedError,
        ("/sys/new.lance",),
    ),
    "a merge in which rows match twice": (
        lambda p: (
            p.table.alias("o")
            .merge(p.rows((1, "x"), (1, "y")).alias("l"), "o.id = l.id")
            .whenMatchedUpdateAll()
            .execute()
        ),
        InvalidRequestError,
        ("Ambiguous merge", "(id = 1;", "orders.lance, version 2", "Deduplicate the source by key"),
    ),
    "a merge in SQL in which rows match twice": (
        lambda p: p.sql(
            "MERGE INTO {t} t USING (SELECT * FROM VALUES (1L,'x'),(1L,'y') AS s(id,name)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        ),
        InvalidRequestError,
        ("Ambiguous merge", "(id = 1;", "orders.lance, version 2"),
    ),
    "an update of a column that is not there": (
        lambda p: p.table.update("id = 1", {"nam": "'x'"}),
        InvalidRequestError,
        ("column nam is not in the table", "orders.lance, version 2", "Did you mean name?"),
    ),
    "a version to go back to that is not there": (
        lambda p: p.table.restoreToVersion(99),
        VersionNotFoundError,
        ("version 99 was not found", "orders.lance"),
    ),
    "a table in Python that is not there": (
        lambda p: LanceTable.forPath(p.spark, p.at("nothing.lance")),
        TableNotFoundError,
        ("not a Lance table", "nothing.lance"),
    ),
    "a change of a tag": (
        lambda p: p.sql("DELETE FROM {t}.tag_first WHERE id = 1"),
        InvalidRequestError,
        ("a fixed version, which cannot be changed", "Use the name of the table"),
    ),
    "a procedure that is not there": (
        lambda p: p.sql("CALL lance.system.rollbak('bad.orders', 1)"),
        NotFoundError,
        ("procedure lance.system.rollbak does not exist", "rollback"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_says_what_to_do(place: Place, case: str) -> None:
    act, kind, said = CASES[case]
    with pytest.raises(Exception) as caught:  # Spark's exceptions have no common root
        act(place)
    error = error_of(caught.value)
    assert isinstance(error, kind)
    assert "\n" not in str(error)
    for part in said:
        assert part in str(error)


SPARKS_OWN = {
    "SELECT * FROM lance.bad.oders": "TABLE_OR_VIEW_NOT_FOUND",
    "INSERT INTO {t} VALUES (1)": "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
    "INSERT INTO {t} VALUES ('abc', 'x')": "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
    "INSERT INTO {t} BY NAME SELECT 1 AS idd": "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA",
    "CREATE TABLE {t} (id bigint)": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "DROP TABLE lance.bad.oders": "TABLE_OR_VIEW_NOT_FOUND",
    "UPDATE {t} SET idd = 1": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "SELECT * FROM {t} TIMESTAMP AS OF 'soon'": "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
}


@pytest.mark.parametrize("query", SPARKS_OWN)
def test_errors_that_spark_finds_first_are_those_of_spark(place: Place, query: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        place.sql(query)
    assert caught.value.getCondition() == SPARKS_OWN[query]


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_a_misspelt_column_is_answered_with_the_tables_own(place: Place, verb: str) -> None:
    acts = {
        "update": lambda: place.table.update("idd = 1", {"name": "'x'"}),
        "delete": lambda: place.table.delete("idd = 1"),
    }
    with pytest.raises(AnalysisException, match=r"Did you mean one of the following\? \[`id`"):
        acts[verb]()


def test_asking_for_a_missing_table_by_path_is_no_error(place: Place) -> None:
    assert not place.spark.catalog.tableExists(f"lance.`{place.at('nothing.lance')}`")


def test_nothing_was_changed(place: Place) -> None:
    assert lancelake.LanceDataset(place.path).version == 2
    assert read(place.spark, place.path).count() == 4
