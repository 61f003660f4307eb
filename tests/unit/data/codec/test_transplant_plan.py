"""The schema of transplanted columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lancelake.data.codec.transplant import Graft, plan_transplant
from lancelake.proto import file_pb2
from tests.support.data_files import FILES, DataFileOnDisk, written


def opened(name: str, tmp_path: Path) -> DataFileOnDisk:
    return DataFileOnDisk.open(FILES / f"{name}.lance", tmp_path)


def nodes(schema: file_pb2.Schema) -> list[tuple[int, int, str, str]]:
    return [(f.id, f.parent_id, f.name, f.logical_type) for f in schema.fields]


def test_a_blob_v2_becomes_a_packed_struct_of_its_descriptor(tmp_path: Path) -> None:
    layout = opened("blob_v2-4.0.2-2.2", tmp_path).layout
    plan = plan_transplant(layout, [layout.columns[1]])
    assert nodes(plan.schema) == [
        (0, -1, "b", "struct"),
        (1, 0, "kind", "uint8"),
        (2, 0, "position", "uint64"),
        (3, 0, "size", "uint64"),
        (4, 0, "blob_id", "uint32"),
        (5, 0, "blob_uri", "string"),
    ]
    assert dict(plan.schema.fields[0].metadata) == {"lance-encoding:packed": b"true"}


def test_a_blob_v1_becomes_a_packed_struct_of_position_and_size(tmp_path: Path) -> None:
    layout = opened("blob_v1-4.0.2-2.1", tmp_path).layout
    plan = plan_transplant(layout, [layout.columns[1]])
    assert nodes(plan.schema) == [
        (0, -1, "b", "struct"),
        (1, 0, "position", "uint64"),
        (2, 0, "size", "uint64"),
    ]
    assert plan.grafts == (Graft(index=1, unwraps_blob=True),)


def test_columns_follow_the_nodes_in_the_order_asked(tmp_path: Path) -> None:
    layout = opened("blob_v2-4.0.2-2.2", tmp_path).layout
    plan = plan_transplant(layout, [layout.columns[k] for k in (4, 2, 3)])
    assert nodes(plan.schema) == [
        (0, -1, "st", "struct"),
        (1, 0, "y", "string"),
        (2, 0, "x", "int32"),
        (3, -1, "s", "string"),
    ]
    assert [graft.index for graft in plan.grafts] == [4, 3, 2]


def test_in_20_files_the_columns_of_parents_come_along(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1]), "l": pa.array([[{"x": 1, "y": 2}]])})
    layout = DataFileOnDisk.open(written(tmp_path / "f.lance", table, "2.0"), tmp_path).layout
    y = next(column for column in layout.columns if column.path[-1] == "y")
    plan = plan_transplant(layout, [y])
    assert [graft.index for graft in plan.grafts] == [1, 2, 4]
    assert not any(graft.pages_hold_rows for graft in plan.grafts)


def test_short_json_becomes_a_string(tmp_path: Path) -> None:
    layout = opened("json_text-4.0.2-2.1", tmp_path).layout
    plan = plan_transplant(layout, layout.columns, short_json={1})
    assert nodes(plan.schema) == [
        (0, -1, "st", "struct"),
        (1, 0, "x", "int32"),
        (2, 0, "j", "string"),
    ]
    assert not plan.schema.fields[2].metadata
