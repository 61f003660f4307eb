"""Texts for debugging name what they describe."""

from __future__ import annotations

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.pylance import debug


def test_texts_name_fields_files_and_operations() -> None:
    made = lance.write_dataset(pa.table({"some_name": [1, 2]}), "memory://debug")
    made.delete("some_name = 1")
    fragment = made.get_fragments()[0].metadata
    assert "some_name" in debug.format_schema(made)
    assert "version: 2" in debug.format_manifest(made)
    text = debug.format_fragment(fragment, made)
    assert f"{fragment.files[0].path}: some_name" in text
    assert "num_deleted_rows: 1" in text
    newest, oldest = debug.list_transactions(made)
    assert "some_name = 1" in newest
    assert "Overwrite" in oldest
    assert debug.list_transactions(made, 1) == [newest]


def test_texts_have_the_layout_of_pylance() -> None:
    made = lance.write_dataset(pa.table({"a": [1, 2]}), "memory://layout")
    lines = ["Field {", '    name: "a",', "    id: 0,", "    parent_id: -1,"]
    kind = ["    logical_type: LogicalType(", '        "int64",', "    ),"]
    expected = "\n        ".join([*lines, *kind])
    assert expected in debug.format_schema(made)
    text = debug.format_fragment(made.get_fragments()[0].metadata, made)
    assert text.startswith("PrettyPrintableFragment {\n    id: 0,")
    assert "\n    schema: Schema {\n" in text
