from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import IndexFile
from lancelake.format.manifest import WriterVersion
from lancelake.format.operations import ReserveFragments
from lancelake.txn import migrations
from lancelake.txn.conflict_matrix import (
    FIRST,
    KEY,
    SECOND,
    TEXT,
    VALUE,
    data_file,
    fragment,
    index,
)
from lancelake.txn.options import Facts, TableState
from tests.unit.txn.making import OPTIONS, after, covered, fragment_ids, table

NOTHING = ReserveFragments(num_fragments=0)
FILES = (IndexFile(path="page_data.lance", size_bytes=3),)


def with_fragments(*fragments: Fragment) -> TableState:
    head = table()
    return replace(head, manifest=replace(head.manifest, fragments=fragments))


def test_a_table_of_today_lacks_nothing() -> None:
    state = table(indices=(replace(index("i", VALUE, FIRST), files=FILES),))
    assert not migrations.wanted(state)


def test_missing_counts_and_sizes_are_wanted_and_filled_in() -> None:
    old = replace(
        fragment(FIRST),
        physical_rows=None,
        files=(replace(fragment(FIRST).files[0], file_size_bytes=None),),
    )
    head = with_fragments(old)
    wanted = migrations.wanted(head)
    assert wanted.physical_rows == {FIRST}
    assert wanted.file_sizes == {(None, "0.lance")}
    facts = Facts(
        physical_rows=FrozenMap({FIRST: 7}), file_sizes=FrozenMap({(None, "0.lance"): 99})
    )
    (found,) = after(NOTHING, head, replace(OPTIONS, facts=facts)).manifest.fragments
    assert (found.physical_rows, found.files[0].file_size_bytes) == (7, 99)


def test_fragments_without_live_rows_are_dropped() -> None:
    facts = Facts(physical_rows=FrozenMap({FIRST: 0}))
    head = with_fragments(replace(fragment(FIRST), physical_rows=None), fragment(SECOND))
    assert fragment_ids(after(NOTHING, head, replace(OPTIONS, facts=facts))) == [SECOND]


@pytest.mark.parametrize(
    ("library", "version", "is_wanted"),
    [
        ("lance", "0.8.14", True),
        ("lance", "0.8.15", False),
        ("lance", "4.0.2-beta.1", False),
        ("x", "0.1", False),
    ],
)
def test_coverage_by_writers_that_got_it_wrong_is_wanted(
    library: str, version: str, is_wanted: bool
) -> None:
    state = table(indices=(replace(index("i", VALUE, FIRST), files=FILES),))
    author = WriterVersion(library=library, version=version)
    state = replace(state, manifest=replace(state.manifest, writer_version=author))
    assert bool(migrations.wanted(state).index_fragments) is is_wanted


def test_segments_that_overlap_are_wanted_and_put_right() -> None:
    one, other = index("a", VALUE, FIRST), index("b", VALUE, FIRST, SECOND)
    pair = tuple(replace(i, name="i") for i in (one, other))
    head = table(indices=pair)
    assert migrations.wanted(head).index_fragments == {one.uuid, other.uuid}
    facts = Facts(
        index_fragments=FrozenMap({other.uuid: bytes(BitMap([SECOND]).serialize())}),
        index_files=FrozenMap({one.uuid: FILES}),
    )
    found = after(NOTHING, head, replace(OPTIONS, facts=facts)).indices
    assert [covered(i) for i in found] == [{FIRST}, {SECOND}]
    assert [i.files for i in found] == [FILES, ()]


def test_a_field_in_two_files_gets_a_fresh_id_in_the_last() -> None:
    double = replace(
        fragment(FIRST),
        files=(data_file("a.lance", (KEY, VALUE, TEXT)), data_file("b.lance", (VALUE, TEXT))),
    )
    state = after(NOTHING, with_fragments(double)).manifest
    assert [f.id for f in state.schema.fields] == [0, 3, 4]
    assert [f.fields for f in state.fragments[0].files] == [(0, 1, 2), (3, 4)]


def test_a_file_whose_columns_all_got_fresh_ids_elsewhere_goes() -> None:
    double = replace(
        fragment(FIRST),
        files=(
            data_file("a.lance", (KEY,)),
            data_file("b.lance", (VALUE,)),
            data_file("c.lance", (VALUE,)),
        ),
    )
    state = after(NOTHING, with_fragments(double)).manifest
    assert [f.path for f in state.fragments[0].files] == ["a.lance", "c.lance"]
    assert state.fragments[0].files[1].fields == (FieldId(3),)


def test_a_version_older_than_the_files_is_raised() -> None:
    head = table()
    head = replace(head, manifest=replace(head.manifest, data_version=FileVersion.LEGACY))
    assert after(NOTHING, head).manifest.data_version is FileVersion.V2_1


def test_files_of_several_versions_are_refused() -> None:
    other = fragment(SECOND)
    other = replace(
        other, files=(replace(other.files[0], file_major_version=0, file_minor_version=2),)
    )
    with pytest.raises(CorruptTableError, match=r"0\.1, 2\.1"):
        after(NOTHING, with_fragments(fragment(FIRST), other))
