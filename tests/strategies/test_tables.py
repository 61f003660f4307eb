"""The strategies draw every type, valid arrays, and tables that releases accept."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.strategies.arrow_types import fields, is_bfloat16
from tests.strategies.histories import histories
from tests.strategies.history import History, run_history
from tests.strategies.tables import KEY, schemas, tables
from tests.strategies.target import FILE_VERSIONS, Target
from tests.support.compare import assert_same_table
from tests.support.official import RELEASES, OfficialError, OfficialPool, is_installed

TARGETS = [Target(release=r, file_version=f) for r in RELEASES for f in FILE_VERSIONS]
NEWEST = Target(release="14.0.2", file_version="2.2")
KINDS = {
    "null",
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("halffloat", "float", "double"),
    *("string", "large_string", "binary", "large_binary", "fixed_size_binary"),
    *("decimal128", "decimal256", "date32", "date64", "time32", "time64", "timestamp", "duration"),
    *("struct", "list", "large_list", "fixed_size_list", "map", "dictionary"),
    *("arrow.json", "lance.bfloat16"),
}
each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


def kinds_in(field: pa.Field) -> set[str]:
    """Return the names of the types that make up a field."""
    if is_bfloat16(field):
        return {"lance.bfloat16"}
    if isinstance(field.type, pa.BaseExtensionType):
        return {field.type.extension_name}
    below = [field.type.field(i) for i in range(field.type.num_fields)]
    name = str(field.type).split("(")[0].split("[")[0].split("<")[0]
    return {name}.union(*(kinds_in(f) for f in below))


def test_every_logical_type_is_drawn() -> None:
    seen: set[str] = set()

    @settings(max_examples=4000)
    @given(fields(NEWEST, "c"))
    def collect(field: pa.Field) -> None:
        seen.update(kinds_in(field))

    collect()
    assert KINDS - seen == set()


@each_target
@given(data=st.data())
def test_tables_are_valid_arrow_with_counting_keys(target: Target, data: DataObject) -> None:
    schema = data.draw(schemas(target))
    table = data.draw(tables(schema, target, first_key=7))
    table.validate(full=True)
    assert table.schema.equals(schema, check_metadata=True)
    assert table[KEY.name].to_pylist() == list(range(7, 7 + table.num_rows))


@pytest.mark.parametrize("file_version", ["2.0", "2.1", "2.2"])
@given(data=st.data())
def test_the_newest_release_gives_back_what_was_drawn(
    officials: OfficialPool, file_version: str, data: DataObject
) -> None:
    target = Target(release="14.0.2", file_version=file_version)
    if not is_installed(target.release):
        pytest.skip(f"official release {target.release} is not installed under .interop/")
    table = data.draw(schemas(target).flatmap(lambda schema: tables(schema, target)))
    with tempfile.TemporaryDirectory(prefix="drawn-") as folder:
        uri = f"{folder}/table.lance"
        officials(target.release).write(uri, table, data_storage_version=file_version)
        assert_same_table(officials(target.release).read(uri), table)


@each_target
def test_hardly_any_step_of_a_history_is_refused(officials: OfficialPool, target: Target) -> None:
    if not is_installed(target.release):
        pytest.skip(f"official release {target.release} is not installed under .interop/")
    refusals: list[OfficialError] = []
    steps: list[object] = []

    @given(histories(target))
    def run(history: History) -> None:
        with tempfile.TemporaryDirectory(prefix="history-") as folder:
            outcomes = run_history(officials(target.release), f"{folder}/t.lance", history)
        steps.extend(outcomes)
        refusals.extend(o.refusal for o in outcomes if o.refusal is not None)

    run()
    assert len(refusals) <= len(steps) // 20, refusals
