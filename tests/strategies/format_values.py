"""Strategies for the dataclasses of manifests and transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from lancelake.format.fragment import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionFileType,
    ExternalFile,
    FileVersion,
    Fragment,
)
from lancelake.format.frozen import FrozenMap
from lancelake.format.index_meta import IndexDetails, IndexFile, IndexMetadata, MergedGeneration
from lancelake.format.manifest import Manifest, WriterVersion
from lancelake.format.operations import BloomKeys, ExactKeys, KeyExistenceFilter
from lancelake.format.refs import Branch, Fork, Tag
from lancelake.format.schema import DictionaryPage, Encoding, Field, Schema

T = TypeVar("T")

u64 = st.integers(0, (1 << 64) - 1)
u32 = st.integers(0, (1 << 32) - 1)
positive_u64 = st.integers(1, (1 << 64) - 1)
i32 = st.integers(-(1 << 31), (1 << 31) - 1)
text = st.text(max_size=8)
blob = st.binary(max_size=12)
flag = st.booleans()
uuids = st.uuids()

KEYS = st.sampled_from(["k", "lance-encoding:blob", "packed", "", "ärger"])
LOGICAL_TYPES = st.sampled_from(["int32", "struct", "list", "json", "from:the:future", ""])
MIN_NS = -62_135_596_800 * 1_000_000_000
MAX_NS = 253_402_300_800 * 1_000_000_000 - 1


@st.composite
def strangers(draw: DrawFn) -> bytes:
    """Draw encoded fields that no message of today has."""
    fields = draw(st.lists(st.tuples(st.integers(4000, 4003), st.binary(max_size=5)), max_size=2))
    return b"".join(_length_delimited(number, data) for number, data in fields)


def _length_delimited(number: int, data: bytes) -> bytes:
    tag = number << 3 | 2
    return bytes([tag & 0x7F | 0x80, tag >> 7 & 0x7F | 0x80, tag >> 14, len(data)]) + data


def text_maps() -> SearchStrategy[FrozenMap[str, str]]:
    """Draw a map of texts."""
    return st.dictionaries(text, text, max_size=3).map(FrozenMap)


def tuples(items: SearchStrategy[T], *, max_size: int = 3) -> SearchStrategy[tuple[T, ...]]:
    """Draw a tuple of any length."""
    return st.lists(items, max_size=max_size).map(tuple)


@st.composite
def field_metadata(draw: DrawFn) -> FrozenMap[str, bytes]:
    """Draw field metadata, at times with an extension name."""
    metadata = draw(st.dictionaries(KEYS, blob, max_size=2))
    name = draw(st.none() | text)
    if name is not None:
        metadata["ARROW:extension:name"] = name.encode()
    return FrozenMap(metadata)


def field_nodes() -> SearchStrategy[Field]:
    """Draw one node, without an id or children."""
    pages = st.builds(
        DictionaryPage,
        offset=st.integers(-(1 << 63), (1 << 63) - 1),
        length=st.integers(0, (1 << 63) - 1),
    )
    return st.builds(
        Field,
        name=text,
        id=st.just(-1),
        logical_type=LOGICAL_TYPES,
        nullable=flag,
        metadata=field_metadata(),
        encoding=st.sampled_from(Encoding),
        dictionary=st.none() | pages,
        storage_class=st.sampled_from(["", "blob"]),
        unenforced_primary_key=flag,
        unenforced_primary_key_position=u32,
        unknown=strangers(),
    )


@st.composite
def schemas(draw: DrawFn, *, with_metadata: bool = True) -> Schema:
    """Draw a tree of fields whose ids are all different."""
    count = draw(st.integers(0, 6))
    nodes = draw(st.lists(field_nodes(), min_size=count, max_size=count))
    ids = draw(st.lists(st.integers(0, (1 << 31) - 1), min_size=count, max_size=count, unique=True))
    parents = [draw(st.integers(-1, position - 1)) for position in range(count)]
    metadata = draw(st.dictionaries(text, blob, max_size=2)) if with_metadata else {}
    tops = _children(-1, -1, nodes, ids, parents)
    return Schema(fields=tops, metadata=FrozenMap(metadata))


def _children(
    position: int, parent_id: int, nodes: list[Field], ids: list[int], parents: list[int]
) -> tuple[Field, ...]:
    return tuple(
        replace(
            nodes[i],
            id=ids[i],
            parent_id=parent_id,
            children=_children(i, ids[i], nodes, ids, parents),
        )
        for i in range(len(nodes))
        if parents[i] == position
    )


def data_files() -> SearchStrategy[DataFile]:
    """Draw a data file entry."""
    return st.builds(
        DataFile,
        path=text,
        fields=tuples(i32),
        column_indices=tuples(i32),
        file_major_version=u32,
        file_minor_version=u32,
        file_size_bytes=st.none() | positive_u64,
        base_id=st.none() | u32,
        unknown=strangers(),
    )


def deletion_files() -> SearchStrategy[DeletionFile]:
    """Draw a deletion file entry."""
    return st.builds(
        DeletionFile,
        file_type=st.sampled_from(DeletionFileType),
        read_version=u64,
        id=u64,
        num_deleted_rows=st.none() | positive_u64,
        base_id=st.none() | u32,
        unknown=strangers(),
    )


def fragments() -> SearchStrategy[Fragment]:
    """Draw a fragment."""
    external = st.builds(ExternalFile, path=text, offset=u64, size=u64)
    sequences = st.none() | blob | external
    return st.builds(
        Fragment,
        id=u32,
        files=tuples(data_files(), max_size=2),
        deletion_file=st.none() | deletion_files(),
        row_ids=sequences,
        last_updated_at_versions=sequences,
        created_at_versions=sequences,
        physical_rows=st.none() | st.integers(1, 1 << 32),
        unknown=strangers(),
    )


def base_paths() -> SearchStrategy[BasePath]:
    """Draw a base path."""
    return st.builds(
        BasePath,
        id=u32,
        name=st.none() | text,
        is_dataset_root=flag,
        path=text,
        unknown=strangers(),
    )


def index_details() -> SearchStrategy[IndexDetails]:
    """Draw the details of an index."""
    return st.builds(IndexDetails, type_url=text, value=blob)


def index_files() -> SearchStrategy[IndexFile]:
    """Draw a file of an index."""
    return st.builds(IndexFile, path=text, size_bytes=u64)


def index_entries() -> SearchStrategy[IndexMetadata]:
    """Draw an index entry."""
    return st.builds(
        IndexMetadata,
        uuid=uuids,
        name=text,
        fields=tuples(i32),
        dataset_version=u64,
        fragment_bitmap=blob,
        details=st.none() | index_details(),
        index_version=st.none() | i32,
        created_at_ms=st.none() | u64,
        base_id=st.none() | u32,
        files=tuples(index_files(), max_size=2),
        unknown=strangers(),
    )


def merged_generations() -> SearchStrategy[MergedGeneration]:
    """Draw the progress of a region."""
    return st.builds(MergedGeneration, region_id=uuids, generation=u64)


def key_filters() -> SearchStrategy[KeyExistenceFilter]:
    """Draw a record of inserted keys."""
    exact = st.builds(ExactKeys, key_hashes=tuples(u64))
    bloom = st.builds(
        BloomKeys,
        bitmap=blob,
        num_bits=u32,
        number_of_items=positive_u64,
        probability=st.floats(1e-9, 1.0),
    )
    return st.builds(KeyExistenceFilter, field_ids=tuples(i32), keys=exact | bloom)


def writers() -> SearchStrategy[WriterVersion]:
    """Draw a writer."""
    return st.builds(
        WriterVersion,
        library=text,
        version=text,
        prerelease=st.none() | text,
        build_metadata=st.none() | text,
    )


@st.composite
def manifests(draw: DrawFn) -> Manifest:
    """Draw a manifest whose fragments have trusted counts and whose row ids need not be stable."""
    found: Sequence[Fragment] = draw(tuples(fragments(), max_size=2))
    return Manifest(
        schema=draw(schemas()),
        fragments=found,
        version=draw(u64),
        data_version=draw(st.sampled_from(FileVersion)),
        timestamp_ns=draw(st.none() | st.integers(MIN_NS, MAX_NS)),
        writer_version=draw(writers()),
        tag=draw(text),
        reader_feature_flags=draw(st.sampled_from([0, 1, 5, 16, 128, 256, 1024])),
        writer_feature_flags=draw(u64),
        max_fragment_id=draw(u32 if found else st.none() | u32),
        transaction_file=draw(text),
        next_row_id=draw(u64),
        config=draw(text_maps()),
        table_metadata=draw(text_maps()),
        base_paths=draw(tuples(base_paths(), max_size=2)),
        branch=draw(st.none() | text),
        version_aux_data=draw(u64),
        unknown=draw(strangers()),
    )


def tags() -> SearchStrategy[Tag]:
    """Draw a tag; metadata goes with the time of creation."""
    return st.builds(
        Tag,
        branch=st.none() | text,
        version=u64,
        manifest_size=u64,
        created_at=st.none() | text,
        updated_at=st.none() | text,
        metadata=text_maps(),
        extra=extras(),
    )


def branches() -> SearchStrategy[Branch]:
    """Draw a branch."""
    return st.builds(
        Branch,
        parent_branch=st.none() | text,
        parent_version=u64,
        create_at=u64,
        manifest_size=u64,
        lineage=st.none() | tuples(st.builds(Fork, version=u64, uuid=text)),
        metadata=text_maps(),
        extra=extras(),
    )


def extras() -> SearchStrategy[FrozenMap[str, str]]:
    """Draw keys of a newer release, as JSON text."""
    values = st.sampled_from(["null", "1", '"x"', '[1, {"a": true}]'])
    return st.dictionaries(st.sampled_from(["newKey", "other"]), values).map(FrozenMap)
