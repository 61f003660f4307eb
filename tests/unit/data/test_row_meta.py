"""Row addresses, ids and versions computed from row positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lancelake.data.fragment_reader import MetaColumn, RowMeta
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import row_addresses
from lancelake.format.rowids import RowIdSequence, VersionSequence
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles

OFFSETS = np.array([0, 2, 3], dtype=np.uint64)
IDS = np.array([100, 7, 8, 9], dtype=np.uint64)


def ids() -> bytes:
    return RowIdSequence.of(IDS).encode()


def meta(
    root: Path | str, *, stable: bool, row_ids: Sequenced = None, **rest: Sequenced
) -> RowMeta:
    fragment = Fragment(id=FragmentId(3), files=(), physical_rows=4, row_ids=row_ids, **rest)
    return RowMeta(TableFiles(root=Location.parse(root)), fragment, 4, stable)


def column(meta: RowMeta, name: MetaColumn) -> list[int]:
    return list(meta.column(name, OFFSETS, OFFSETS + np.uint64(50)).to_pylist())


def test_address_is_fragment_and_offset() -> None:
    assert row_addresses(3, OFFSETS).tolist() == [3 << 32, (3 << 32) + 2, (3 << 32) + 3]


def test_address_of_the_last_possible_row_fits() -> None:
    last = np.array([2**32 - 1], dtype=np.uint64)
    assert row_addresses(2**32 - 1, last).tolist() == [2**64 - 1]


def test_ids_are_addresses_without_stable_ids(tmp_path: Path) -> None:
    found = column(meta(tmp_path, stable=False, row_ids=ids()), MetaColumn.ROW_ID)
    assert found == row_addresses(3, OFFSETS).tolist()


def test_stable_ids_are_those_of_the_sequence(tmp_path: Path) -> None:
    found = column(meta(tmp_path, stable=True, row_ids=ids()), MetaColumn.ROW_ID)
    assert found == [100, 8, 9]


def test_sequence_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    data = ids()
    (tmp_path / "rows.bin").write_bytes(b"before" + data + b"after")
    place = ExternalFile(path="rows.bin", offset=6, size=len(data))
    found = column(meta(tmp_path, stable=True, row_ids=place), MetaColumn.ROW_ID)
    assert found == [100, 8, 9]


def test_path_out_of_the_table_is_refused(tmp_path: Path) -> None:
    place = ExternalFile(path="../rows.bin", offset=0, size=1)
    with pytest.raises(CorruptTableError, match="leaves the table"):
        column(meta(tmp_path, stable=True, row_ids=place), MetaColumn.ROW_ID)


def test_stable_ids_that_are_missing_are_damage(tmp_path: Path) -> None:
    with pytest.raises(CorruptTableError, match="fragment 3 has no row ids"):
        column(meta(tmp_path, stable=True), MetaColumn.ROW_ID)


def test_sequence_of_another_length_is_damage(tmp_path: Path) -> None:
    short = RowIdSequence.of(IDS[:2]).encode()
    with pytest.raises(CorruptTableError):
        column(meta(tmp_path, stable=True, row_ids=short), MetaColumn.ROW_ID)


def test_number_is_the_rank_that_was_given(tmp_path: Path) -> None:
    assert column(meta(tmp_path, stable=False), MetaColumn.ROW_OFFSET) == [50, 52, 53]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (MetaColumn.CREATED_AT, "created_at_versions"),
        (MetaColumn.LAST_UPDATED_AT, "last_updated_at_versions"),
    ],
)
def test_versions_are_those_of_the_sequence(tmp_path: Path, name: MetaColumn, key: str) -> None:
    data = VersionSequence(((2, 5), (1, 6), (1, 7))).encode()
    assert column(meta(tmp_path, stable=True, **{key: data}), name) == [5, 6, 7]


@pytest.mark.parametrize("name", [MetaColumn.CREATED_AT, MetaColumn.LAST_UPDATED_AT])
def test_versions_that_were_not_kept_are_one(tmp_path: Path, name: MetaColumn) -> None:
    assert column(meta(tmp_path, stable=False), name) == [1, 1, 1]
