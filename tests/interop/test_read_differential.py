"""Reads of tables of official releases match their reads: random tables, random histories."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from tests.strategies.histories import histories, open_members, predicates, quoted
from tests.strategies.history import History, run_history
from tests.strategies.target import FILE_VERSIONS, Target
from tests.support.compare import assert_same_schema, assert_same_table
from tests.support.official import RELEASES, Info, Official, OfficialPool, is_installed
from tests.support.oracle import Oracle
from tests.support.readers import Reader, reader_under_test

TARGETS = [Target(release=r, file_version=f) for r in RELEASES for f in FILE_VERSIONS]
KEYS = 40
META_COLUMNS = (
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
)

Version = int | str

each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table with a history, who wrote it, who judges, who is judged."""

    uri: str
    writer: Official
    oracle: Oracle
    subject: Reader
    versions: tuple[int, ...]
    tags: tuple[str, ...]

    def ensure_same_schema(self, version: Version) -> None:
        """Compare the schemas of one version."""
        self.oracle.ensure_same(
            self.subject, lambda reader: reader.schema(self.uri, version), assert_same_schema
        )

    def ensure_same_scan(self, version: Version, **options: Any) -> None:
        """Compare what a scan gives: schema, order and values."""
        self.oracle.ensure_same(
            self.subject,
            lambda reader: reader.read(self.uri, version, **options),
            assert_same_table,
        )

    def ensure_same_selection(self, version: Version, where: str) -> None:
        """Compare the rows that match, in any order.

        Official scans put rows that an index found apart from the others. Their statistics of
        legacy files count empty strings as present, while the rows come back as null.
        """
        options = {"filter": where, "with_row_id": True, "use_stats": False}
        self.oracle.ensure_same(
            self.subject,
            lambda reader: reader.read(self.uri, version, **options).sort_by("key"),
            assert_same_table,
        )

    def ensure_same_count(self, version: Version, where: str | None) -> None:
        """Compare numbers of rows."""
        self.oracle.ensure_same(
            self.subject, lambda reader: reader.count_rows(self.uri, version, where), _assert_equal
        )

    def ensure_same_take(
        self, version: Version, indices: list[int], columns: list[str] | None
    ) -> None:
        """Compare rows read by position."""
        self.oracle.ensure_same(
            self.subject,
            lambda reader: reader.take(self.uri, version, indices, columns),
            _assert_same_taken,
        )


@contextmanager
def a_case(officials: OfficialPool, target: Target, data: DataObject) -> Iterator[Case]:
    """Let the target's release write a random history, and describe the result."""
    if not is_installed(target.release):
        pytest.skip(f"official release {target.release} is not installed under .interop/")
    writer = officials(target.release)
    history = data.draw(histories(target), label="history")
    uri, info = _written(writer, history)
    yield Case(
        uri=uri,
        writer=writer,
        oracle=Oracle(officials, target.release),
        subject=reader_under_test(officials),
        versions=info.versions,
        tags=tuple(info.tags),
    )


_tables = tempfile.TemporaryDirectory(prefix="differential-")
_results: dict[bytes, tuple[str, Info]] = {}


def _written(writer: Official, history: History) -> tuple[str, Info]:
    """Run a history once: the same one drawn again must find the same versions."""
    key = hashlib.sha256(pickle.dumps(history)).digest()
    if key not in _results:
        uri = f"{_tables.name}/{len(_results)}.lance"
        for step, outcome in zip(history.steps, run_history(writer, uri, history)[1:], strict=True):
            event(f"{type(step).__name__} {'refused' if outcome.refusal else 'done'}")
        _results[key] = (uri, writer.info(uri))
    return _results[key]


def columns_of(schema: pa.Schema) -> st.SearchStrategy[list[str]]:
    """Draw top-level columns in any order."""
    return st.lists(st.sampled_from(schema.names), min_size=1, max_size=4, unique=True)


def paths_of(schema: pa.Schema) -> st.SearchStrategy[list[str]]:
    """Draw columns and struct members by path, in any order."""
    paths = [quoted(name) for name in schema.names]
    for field in schema:
        # Official releases give garbage for members of packed structs.
        members = open_members(field)
        paths += [f"{quoted(field.name)}.{quoted(member.name)}" for member in members]
    return st.lists(st.sampled_from(paths), min_size=1, max_size=4, unique=True)


@st.composite
def filters(draw: DrawFn, schema: pa.Schema) -> str:
    """Draw conditions on the key and on the nulls of other columns."""
    left = draw(predicates(KEYS))
    column = quoted(draw(st.sampled_from(schema.names)))
    right = draw(st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL", "key > 2"]))
    shape = draw(st.sampled_from(["{0}", "{1}", "{0} AND {1}", "{0} OR {1}", "NOT ({0})"]))
    return shape.format(left, right)


@each_target
@given(data=st.data())
def test_every_version_has_the_same_schema_and_rows(
    officials: OfficialPool, target: Target, data: DataObject
) -> None:
    with a_case(officials, target, data) as case:
        versions: list[Version] = [*case.versions, *case.tags]
        for version in versions:
            case.ensure_same_schema(version)
            case.ensure_same_scan(version)


@each_target
@given(data=st.data())
def test_rows_are_counted_alike(officials: OfficialPool, target: Target, data: DataObject) -> None:
    with a_case(officials, target, data) as case:
        for version in case.versions:
            where = data.draw(st.one_of(st.none(), predicates(KEYS)), label="where")
            case.ensure_same_count(version, where)


@each_target
@given(data=st.data())
def test_row_ids_addresses_and_versions_are_the_same(
    officials: OfficialPool, target: Target, data: DataObject
) -> None:
    with a_case(officials, target, data) as case:
        version = data.draw(st.sampled_from(case.versions), label="version")
        case.ensure_same_scan(version, with_row_id=True, with_row_address=True)
        case.ensure_same_scan(version, columns=["key", *META_COLUMNS])


@each_target
@given(data=st.data())
def test_projections_give_the_same_columns(
    officials: OfficialPool, target: Target, data: DataObject
) -> None:
    with a_case(officials, target, data) as case:
        version = data.draw(st.sampled_from(case.versions), label="version")
        schema = _schema(case, version)
        columns = data.draw(st.one_of(columns_of(schema), paths_of(schema)), label="columns")
        with_row_id = data.draw(st.booleans(), label="with_row_id")
        case.ensure_same_scan(version, columns=columns, with_row_id=with_row_id)


@each_target
@given(data=st.data())
def test_filters_limits_and_orders_select_the_same_rows(
    officials: OfficialPool, target: Target, data: DataObject
) -> None:
    filterable = replace(target, misreads_when_filtered=False)
    with a_case(officials, filterable, data) as case:
        version = data.draw(st.sampled_from(case.versions), label="version")
        schema = _schema(case, version)
        where = data.draw(filters(schema), label="filter")
        # Release 4.0.2 takes a limit of 0 for no limit when rows are filtered or ordered.
        limit = data.draw(st.one_of(st.none(), st.integers(1, 9)), label="limit")
        offset = data.draw(st.one_of(st.none(), st.integers(0, 5)), label="offset")
        page = {"limit": limit, "offset": offset}
        case.ensure_same_scan(version, columns=["key"], **page)
        case.ensure_same_selection(version, where)
        ascending = data.draw(st.booleans(), label="ascending")
        ordered = {"order_by": [("key", ascending, False)], "use_stats": False, **page}
        case.ensure_same_scan(version, filter=where, **ordered)


@each_target
@given(data=st.data())
def test_rows_are_taken_alike_by_position(
    officials: OfficialPool, target: Target, data: DataObject
) -> None:
    with a_case(officials, target, data) as case:
        version = data.draw(st.sampled_from(case.versions), label="version")
        rows = case.writer.count_rows(case.uri, version)
        if rows == 0:
            return
        places = st.lists(st.integers(0, rows - 1), min_size=1, max_size=8)
        indices = data.draw(places, label="indices")
        schema = _schema(case, version)
        columns = data.draw(st.one_of(st.none(), columns_of(schema)), label="columns")
        case.ensure_same_take(version, indices, columns)


def _schema(case: Case, version: int) -> pa.Schema:
    code = "result = lance.dataset(uri, version=version).schema"
    return case.writer.run(case.uri, code, version=version)


def _assert_same_taken(actual: pa.Table, expected: pa.Table) -> None:
    """Ignore schema metadata: official takes keep it only when the positions ascend."""
    assert_same_table(actual.replace_schema_metadata(), expected.replace_schema_metadata())


def _assert_equal(actual: int, expected: int) -> None:
    assert actual == expected
