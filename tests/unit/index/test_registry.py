"""Kinds are found by the details of an entry; others, and newer versions, are never used."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.ids import Version
from lancelake.format.index_meta import IndexDetails, IndexMetadata
from lancelake.index.kinds import KINDS, kind_named, kind_of, kind_of_files


def entry(type_url: str | None, version: int | None = 0, value: bytes = b"") -> IndexMetadata:
    return IndexMetadata(
        uuid=uuid.UUID(int=1),
        name="i",
        fields=(),
        dataset_version=Version(1),
        details=None if type_url is None else IndexDetails(type_url=type_url, value=value),
        index_version=version,
    )


@pytest.mark.parametrize(
    ("type_url", "name"),
    [
        ("/lance.table.BTreeIndexDetails", "BTREE"),
        ("type.googleapis.com/lance.table.BitmapIndexDetails", "BITMAP"),
        ("/lance.table.labellistindexdetails", "LABEL_LIST"),
    ],
)
def test_a_kind_is_found_by_its_details(type_url: str, name: str) -> None:
    kind = kind_of(entry(type_url))
    assert kind is not None
    assert kind.name == name
    assert kind_of(entry(type_url, None)) is kind


@pytest.mark.parametrize(
    "unused",
    [
        entry(None),
        entry("/lance.table.NewIndexDetails"),
        entry("/lance.table.BTreeIndexDetails", 2),
        entry("/lance.table.BitmapIndexDetails", 1),
        entry("/lance.table.LabelListIndexDetails", 2),
        entry("/lance.table.InvertedIndexDetails", 4),
        entry("/lance.table.InvertedIndexDetails", 2, b"\x0a\x05jieba"),
        entry("/lance.table.InvertedIndexDetails", 3, b"\x0a\x04code\x6a\x02\x20\x01"),
    ],
)
def test_unknown_kinds_and_newer_versions_are_not_used(unused: IndexMetadata) -> None:
    assert kind_of(unused) is None


@pytest.mark.parametrize(
    ("names", "dtype", "name"),
    [
        (["page_data.lance", "page_lookup.lance"], pa.int64(), "BTREE"),
        (["bitmap_page_lookup.lance"], pa.string(), "BITMAP"),
        (["bitmap_page_lookup.lance"], pa.list_(pa.string()), "LABEL_LIST"),
        (["metadata.lance", "part_0_tokens.lance"], pa.string(), "INVERTED"),
    ],
)
def test_the_kind_of_an_entry_without_details_is_that_of_its_files(names, dtype, name) -> None:
    kind = kind_of_files(names, dtype)
    assert kind is not None
    assert kind.name == name


def test_files_of_another_kind_have_none() -> None:
    assert kind_of_files(["metadata.lance"], pa.int64()) is None
    assert kind_of_files(["ngram_postings.lance"], pa.string()) is None


def test_kinds_have_names_and_details_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len({kind.details_type for kind in KINDS}) == len(KINDS)
    assert kind_named("btree").name == "BTREE"


def test_a_misspelt_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidRequestError, match="Did you mean BTREE"):
        kind_named("BTRE")
