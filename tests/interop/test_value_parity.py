"""Fragments, schemas and indices have the values that official releases show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancelake.format import index_meta, layout
from lancelake.format.manifest import ManifestFile, decode_manifest
from lancelake.pylance._dataset.index_values import describe, inform
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance.schema import LanceSchema, json_to_schema, schema_to_json
from tests.interop import plain_values
from tests.interop.plain_values import plain, printed
from tests.support.official import Official

DUMPER = Path(plain_values.__file__).read_text(encoding="utf-8")

FRAGMENTS = """
import json
from lance.fragment import FragmentMetadata

numbers = pa.table({"a": range(40), "b": range(40)})
lance.write_dataset(numbers, uri, max_rows_per_file=20, enable_stable_row_ids=stable)
lance.dataset(uri).delete("a % 7 = 0")
lance.dataset(uri).update({"b": "a * 2"}, where="a > 35")
fragments = [f.metadata for f in lance.dataset(uri).get_fragments()]
result = {"printed": [printed(f) for f in fragments]}
try:
    result["json"] = [json.dumps(f.to_json()) for f in fragments]
except NotImplementedError:
    result["json"] = None
"""

READ_BACK = """
from lance.fragment import FragmentMetadata

fragments = [f.metadata for f in lance.dataset(uri).get_fragments()]
result = [FragmentMetadata.from_json(text) == fragment for text, fragment in zip(texts, fragments)]
"""

SCHEMA = """
from lance.schema import LanceSchema, json_to_schema, schema_to_json

found = LanceSchema.from_pyarrow(schema)
result = {"values": plain(found), "printed": printed(found), "arrow": found.to_pyarrow()}
"""

SCHEMA_JSON = """
from lance.schema import json_to_schema, schema_to_json

result = {"json": schema_to_json(schema), "back": json_to_schema(ours).equals(schema)}
"""

INDICES = """
import warnings

warnings.simplefilter("ignore")
count = 300
vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i) for i in range(8 * count)],
                                                     pa.float32()), 8)
rows = pa.table({
    "a": range(count),
    "t": [f"word{i}" for i in range(count)],
    "l": [[str(i % 4)] for i in range(count)],
    "s": pa.array([{"x": i} for i in range(count)]),
    "v": vectors,
})
lance.write_dataset(rows, uri, max_rows_per_file=100)
for column, kind, name in [("a", "BTREE", "plain"), ("a", "BITMAP", "bits"),
                           ("l", "LABEL_LIST", "labels"), ("t", "INVERTED", "words"),
                           ("t", "NGRAM", "grams"), ("s.x", "ZONEMAP", "zones"),
                           ("a", "BLOOMFILTER", "bloom")]:
    lance.dataset(uri).create_scalar_index(column, kind, name=name)
lance.dataset(uri).create_index("v", "IVF_PQ", name="near", num_partitions=2,
                                num_sub_vectors=2, num_bits=4)
lance.dataset(uri).create_index("v", "IVF_HNSW_SQ", name="graph", num_partitions=2)
lance.write_dataset(rows.slice(0, 50), uri, mode="append")
lance.dataset(uri).delete("a < 10")
lance.dataset(uri).optimize.optimize_indices(index_names=["plain"], num_indices_to_merge=0)
ds = lance.dataset(uri)
names = ("name", "type_url", "index_type", "num_rows_indexed", "fields", "field_names",
         "details", "total_size_bytes")
parts = ("uuid", "dataset_version_at_last_update", "fragment_ids", "index_version", "created_at",
         "size_bytes", "base_id", "covering_fields")
result = {
    "listed": [plain(i) for i in ds.list_indices()],
    "printed": [repr(i) for i in ds.describe_indices()],
    "described": [
        {n: plain(getattr(i, n)) for n in names}
        | {"segments": [{p: plain(getattr(s, p)) for p in parts if hasattr(s, p)}
                        for s in i.segments]}
        for i in ds.describe_indices()
    ],
}
"""

CLUSTERING = re.compile(r", unenforced_clustering_key_position: None")
BOTH_MODES = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("s", pa.struct([pa.field("a.b", pa.int32()), pa.field("l", pa.list_(pa.int8()))])),
        pa.field("v", pa.list_(pa.float32(), 4)),
        pa.field("d", pa.dictionary(pa.int8(), pa.string())),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        pa.field("dec", pa.decimal128(10, 2)),
        pa.field("u", pa.uuid()),
        pa.field("t", pa.fixed_shape_tensor(pa.float32(), [2, 2])),
        pa.field('odd "\\ name', pa.null(), metadata={"k": 'v"\\'}),
    ],
    {"k": "v"},
)
WITHOUT_MAP = pa.schema([field for field in ARROW if field.name != "m"], ARROW.metadata)


def manifest(uri: str) -> ManifestFile:
    found = [layout.parse_manifest_name(path.name) for path in Path(uri, "_versions").iterdir()]
    newest = max((name for name in found if name is not None), key=lambda name: name.version)
    return decode_manifest(Path(uri, "_versions", newest.name).read_bytes())


def fragments(uri: str) -> list[FragmentMetadata]:
    return [from_fragment(fragment) for fragment in manifest(uri).manifest.fragments]


@BOTH_MODES
def test_a_fragment_is_printed_as_the_release_prints_it(official: Official, tmp_table, stable):
    theirs = official.run(tmp_table, f"{DUMPER}\n{FRAGMENTS}", stable=stable)["printed"]

    ours = [printed(fragment) for fragment in fragments(tmp_table)]

    if official.release == "4.0.2":
        ours = [text.replace(", overlays=[]", "") for text in ours]
    assert ours == theirs


@BOTH_MODES
def test_a_fragment_is_the_json_of_the_release(official: Official, tmp_table, stable):
    theirs = official.run(tmp_table, f"{DUMPER}\n{FRAGMENTS}", stable=stable)["json"]
    if theirs is None:
        pytest.skip("4.0.2 has no JSON for fragments with row ids")

    ours = [fragment.to_json() for fragment in fragments(tmp_table)]

    assert [json.loads(text) for text in theirs] == [
        {key: value for key, value in shown.items() if key in json.loads(theirs[0])}
        for shown in ours
    ]
    assert [FragmentMetadata.from_json(text) for text in theirs] == fragments(tmp_table)


@BOTH_MODES
def test_the_release_reads_our_json_of_a_fragment(official: Official, tmp_table, stable):
    if official.release == "4.0.2" and stable:
        pytest.skip("4.0.2 has no JSON for fragments with row ids")
    official.run(tmp_table, f"{DUMPER}\n{FRAGMENTS}", stable=stable)

    texts = [json.dumps(fragment.to_json()) for fragment in fragments(tmp_table)]

    assert official.run(tmp_table, READ_BACK, texts=texts) == [True] * 3


def test_a_schema_is_made_and_printed_as_the_release_does(official: Official, tmp_table):
    theirs = official.run(tmp_table, f"{DUMPER}\n{SCHEMA}", schema=ARROW)

    ours = LanceSchema.from_pyarrow(ARROW)

    text = printed(ours)
    if official.release == "4.0.2":
        text = CLUSTERING.sub("", text)
    assert text == theirs["printed"]
    assert plain(ours) == theirs["values"]
    assert ours.to_pyarrow().equals(theirs["arrow"], check_metadata=True)


def test_a_schema_is_the_json_of_the_release(official: Official, tmp_table):
    ours = schema_to_json(WITHOUT_MAP)

    theirs = official.run(tmp_table, SCHEMA_JSON, schema=WITHOUT_MAP, ours=ours)

    assert theirs == {"json": ours, "back": True}
    assert json_to_schema(theirs["json"]).equals(WITHOUT_MAP, check_metadata=True)


@pytest.fixture(scope="module")
def indices(
    official: Official, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Official, str, dict[str, Any]]:
    """Have the release build indices of many kinds and describe them."""
    uri = str(tmp_path_factory.mktemp("indices") / "table")
    return official, uri, official.run(uri, f"{DUMPER}\n{INDICES}")


def test_indices_are_described_as_the_release_describes_them(indices):
    official, uri, theirs = indices
    ours = [shown(index) for index in described(uri, theirs)]

    if official.release == "4.0.2":
        ours = [as_in_4(index) for index in ours]
    assert ours == [without_newer_details(index) for index in theirs["described"]]


def test_descriptions_are_printed_as_the_release_prints_them(indices):
    official, uri, theirs = indices
    ours = [repr(index) for index in described(uri, theirs)]

    if official.release == "4.0.2":
        ours = [text.replace('["s.x"]', '["x"]') for text in ours]
    assert ours == theirs["printed"]


def test_indices_are_listed_as_the_release_lists_them(indices):
    _, uri, theirs = indices
    file = manifest(uri)
    entries = index_meta.decode_section(file.index_section)

    ours = inform(entries, file.manifest, kinds=told_kinds(theirs))

    assert by_uuid(plain(each) for each in ours) == by_uuid(theirs["listed"])


def described(uri: str, theirs: dict[str, Any]) -> list[Any]:
    file = manifest(uri)
    entries = index_meta.decode_section(file.index_section)
    return describe(entries, file.manifest, kinds=told_kinds(theirs))


def told_kinds(theirs: dict[str, Any]) -> dict[Any, str]:
    """Releases of the 4 line name the kind of a vector index in its files only."""
    file_kinds = {each["uuid"]: each["type"] for each in theirs["listed"]}
    return {index_meta.uuid.UUID(unique): kind for unique, kind in file_kinds.items()}


def shown(index: Any) -> dict[str, Any]:
    body = {name: plain(getattr(index, name)) for name in index.__slots__ if name != "segments"}
    segments = [
        {name: plain(getattr(segment, name)) for name in segment.__slots__}
        for segment in index.segments
    ]
    return without_newer_details(body | {"segments": segments})


def as_in_4(index: dict[str, Any]) -> dict[str, Any]:
    """Leave out what 4.0.2 does not tell, and name a nested field as it does."""
    segments = [
        {name: value for name, value in each.items() if name not in ("base_id", "covering_fields")}
        for each in index["segments"]
    ]
    field_names = [name.rsplit(".")[-1] for name in index["field_names"]]
    return index | {"segments": segments, "field_names": field_names}


def without_newer_details(index: dict[str, Any]) -> dict[str, Any]:
    """Compare the settings of a tokenizer that both releases know."""
    known = index["details"].keys() & {"base_tokenizer", "language", "stem", "compression"}
    return index | {"details": {key: index["details"][key] for key in known}}


def by_uuid(listed: Any) -> dict[str, Any]:
    return {each["uuid"]: each for each in listed}
