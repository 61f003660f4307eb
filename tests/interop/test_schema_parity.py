"""Schemas are written, shown and refused as in official releases."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancelake.errors import LanceTableError
from lancelake.format.arrow_schema import from_arrow, public_schema
from lancelake.format.manifest import decode_manifest
from lancelake.format.schema import encode_schema
from lancelake.proto import file_pb2, table_pb2
from tests.interop.schema_cases import CASES
from tests.support.compare import plain_schema
from tests.support.official import Official

VERSIONS = ("2.1", "2.2")
WRITE = """
result = {}
for name, schema in schemas.items():
    for version in versions:
        case = name + "/" + version
        target = f"{uri}/{len(result)}"
        try:
            empty = pa.RecordBatchReader.from_batches(schema, [])
            ds = lance.write_dataset(empty, target, data_storage_version=version)
            result[case] = {"uri": target, "schema": ds.schema}
        except BaseException as error:
            result[case] = {"error": type(error).__name__ + ": " + str(error)}
"""

NESTED_JSON = {"type struct<j: string>", "type fixed_size_list<item: struct<j: string>>[2]"}
# 4.0.2 converts JSON at the top level only, and takes fewer words for yes;
# 14.0.2 reads the ids that are asked for and then numbers anew.
OTHER_BYTES = {
    "4.0.2": {*NESTED_JSON, "key 'on'", "key 'y'"},
    "14.0.2": {"id '7'", "id '+7'", "ids"},
}
OTHER_SHOWN = {"4.0.2": NESTED_JSON, "14.0.2": set()}
# 14.0.2 makes blobs of the second kind of those of the first.
CONVERTED = {("14.0.2", "2.2"): {"blob"}}
# We follow 14.0.2 where the releases differ.
REFUSED_BY_4 = {
    "type string_view",
    "type binary_view",
    "type list<item: string_view>",
    "type timestamp[us, tz=+05:30]",
    "type fixed_size_list<item: timestamp[us, tz=+05:30]>[2]",
    "type dictionary<values=string_view, indices=int8, ordered=0>",
    "json of string_view",
}
REFUSED_BY_14 = {
    "type fixed_size_list<item: float>[0]",
    "row version",
}


@pytest.fixture(scope="module")
def answers(official: Official, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Write an empty table of every schema with the release, and keep what it said."""
    root = tmp_path_factory.mktemp("schemas")
    found = official.run(root, WRITE, schemas=dict(CASES), versions=list(VERSIONS))
    assert len(found) == len(CASES) * len(VERSIONS)
    return found


def written_fields(uri: str) -> list[file_pb2.Field]:
    (path,) = (Path(uri) / "_versions").glob("*.manifest")
    data = path.read_bytes()
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    return list(table_pb2.Manifest.FromString(data[position + 4 : -16]).fields)


def plain(fields: list[file_pb2.Field]) -> list[bytes]:
    """Encode fields for comparison; a table without rows has no dictionary pages yet."""
    for field in fields:
        field.ClearField("dictionary")
    return [field.SerializeToString(deterministic=True) for field in fields]


def is_refused(schema: pa.Schema) -> bool:
    try:
        from_arrow(schema)
    except LanceTableError:
        return True
    return False


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_are_written_byte_for_byte(official, answers, version):
    different = set()
    for name, schema in CASES.items():
        answer = answers[f"{name}/{version}"]
        if "uri" in answer and not is_refused(schema):
            mine = encode_schema(from_arrow(schema))
            if plain(mine) != plain(written_fields(answer["uri"])):
                different.add(name)

    converted = CONVERTED.get((official.release, version), set())
    assert different == OTHER_BYTES[official.release] | converted


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_shows_the_same_schema(official, answers, version):
    different = set()
    for name in CASES.keys() - REFUSED_BY_14:
        answer = answers[f"{name}/{version}"]
        if "uri" in answer:
            (path,) = (Path(answer["uri"]) / "_versions").glob("*.manifest")
            schema = decode_manifest(path.read_bytes()).manifest.schema
            mine, theirs = plain_schema(public_schema(schema)), plain_schema(answer["schema"])
            if not mine.equals(theirs, check_metadata=True):
                different.add(name)

    assert different == OTHER_SHOWN[official.release]


def test_the_same_schemas_are_refused(official, answers):
    theirs = {name for name in CASES if "error" in answers[f"{name}/2.2"]}
    mine = {name for name, schema in CASES.items() if is_refused(schema)}

    if official.release == "4.0.2":
        theirs = theirs - REFUSED_BY_4 - {"blob"} | REFUSED_BY_14
    assert mine == theirs


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_with_rows_has_the_dictionary_that_we_write(official, tmp_table, version):
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    table = pa.table({"c": words, "s": pa.StructArray.from_arrays([words], ["w"])})
    official.write(tmp_table, table, data_storage_version=version)
    mine = encode_schema(from_arrow(table.schema))

    assert mine == written_fields(tmp_table)
