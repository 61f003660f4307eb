from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import operations as ops
from lancelake.format.fragment import BasePath, FileVersion
from lancelake.format.ids import BaseId, FragmentId, Version
from lancelake.format.manifest import FeatureFlags
from lancelake.txn import build, conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, without_rows
from lancelake.txn.options import VersionChoices
from tests.unit.txn.making import OPTIONS, after, ids, row_id_list, table, transaction

NEW = conflict_matrix.fragment(FragmentId(0), path="new.lance")
CREATE = ops.Overwrite(fragments=(NEW,), schema=conflict_matrix.table().manifest.schema)
RESERVE = ops.ReserveFragments(num_fragments=0)
DELETE = ops.Delete(
    updated_fragments=(without_rows(FIRST, 1),), deleted_fragment_ids=(), predicate="p"
)


def test_a_new_table_starts_with_version_one() -> None:
    state = build.create(transaction(CREATE, read_version=0), OPTIONS).manifest
    assert (state.version, state.max_fragment_id, state.next_row_id) == (1, 0, 0)
    assert state.data_version is FileVersion.V2_1


def test_an_empty_table_has_no_highest_fragment() -> None:
    op = replace(CREATE, fragments=())
    assert build.create(transaction(op), OPTIONS).manifest.max_fragment_id is None


def test_a_new_table_can_have_stable_row_ids() -> None:
    options = replace(OPTIONS, choices=VersionChoices(enable_stable_row_ids=True))
    state = build.create(transaction(CREATE), options).manifest
    assert row_id_list(state.fragments[0]) == list(range(10))
    assert state.reader_feature_flags == state.writer_feature_flags == FeatureFlags.STABLE_ROW_IDS


def test_a_new_table_can_have_bases() -> None:
    base = BasePath(id=BaseId(0), name="b", is_dataset_root=False, path="memory:///b")
    state = build.create(transaction(replace(CREATE, initial_bases=(base,))), OPTIONS).manifest
    assert [b.id for b in state.base_paths] == [1]


def test_only_an_overwrite_creates_a_table() -> None:
    with pytest.raises(InvalidRequestError, match="Append cannot create a table"):
        build.create(transaction(ops.Append(fragments=())), OPTIONS)


def test_the_version_says_when_by_whom_and_by_what() -> None:
    state = build.next_state(replace(transaction(RESERVE), tag="t"), table(), OPTIONS).manifest
    assert (state.version, state.timestamp_ns, state.tag) == (2, 5_000_000_000, "t")
    assert state.writer_version == OPTIONS.writer
    assert state.transaction_file == "1-2f6b3f0e-6d52-4f0c-9b0a-000000000000.txn"


def test_a_version_outside_the_line_has_the_number_it_is_given() -> None:
    number = Version(1 << 63 | 7)
    assert after(RESERVE, options=replace(OPTIONS, version=number)).manifest.version == number


def test_a_version_without_transaction_file_is_flagged_for_writers() -> None:
    state = after(RESERVE, options=replace(OPTIONS, has_transaction_file=False)).manifest
    assert state.transaction_file == ""
    assert state.writer_feature_flags == FeatureFlags.NO_TRANSACTION_FILES


def test_deletions_are_flagged_while_there_are_any() -> None:
    deleted = after(DELETE)
    assert deleted.manifest.reader_feature_flags == FeatureFlags.DELETION_FILES
    restored = after(ops.Restore(version=Version(1)), deleted, restored=table())
    assert restored.manifest.reader_feature_flags == 0


def test_unknown_parts_and_other_flags_stay() -> None:
    head = table()
    head = replace(
        head, manifest=replace(head.manifest, unknown=b"\xa2\x06\x01x", reader_feature_flags=128)
    )
    state = after(DELETE, head).manifest
    assert state.unknown == b"\xa2\x06\x01x"
    assert state.reader_feature_flags == 128 | FeatureFlags.DELETION_FILES


def test_a_table_that_needs_an_unknown_feature_is_not_written() -> None:
    head = table()
    head = replace(head, manifest=replace(head.manifest, writer_feature_flags=256))
    with pytest.raises(UnsupportedError, match="0x100"):
        after(DELETE, head)


def test_fragments_are_in_the_order_of_their_ids() -> None:
    head = table()
    manifest = replace(head.manifest, fragments=tuple(reversed(head.manifest.fragments)))
    state = after(RESERVE, replace(head, manifest=manifest))
    assert [f.id for f in state.manifest.fragments] == [0, 1]


def test_row_ids_in_a_table_make_them_stable() -> None:
    head = table()
    fragments = tuple(
        replace(f, row_ids=ids(range(10 * f.id, 10 * f.id + 10))) for f in head.manifest.fragments
    )
    head = replace(head, manifest=replace(head.manifest, fragments=fragments, next_row_id=20))
    assert after(RESERVE, head).manifest.has_stable_row_ids


USED_UP: dict[str, tuple[dict[str, int], ops.Operation]] = {
    "version numbers": ({"version": Version((1 << 63) - 1)}, RESERVE),
    "version numbers that no line has": ({"version": Version((1 << 64) - 1)}, RESERVE),
    "fragment ids": ({"max_fragment_id": (1 << 32) - 1}, ops.Append(fragments=(NEW,))),
    "fragment ids of moved rows": (
        {"max_fragment_id": (1 << 32) - 1},
        ops.Update(new_fragments=(NEW,)),
    ),
    "row ids": ({"next_row_id": (1 << 64) - 5}, ops.Append(fragments=(NEW,))),
}


@pytest.mark.parametrize("what", USED_UP)
def test_numbers_that_are_used_up_raise(what: str) -> None:
    claimed, operation = USED_UP[what]
    state = table(stable=True)
    head = replace(state, manifest=replace(state.manifest, **cast(Any, claimed)))
    with pytest.raises(InvalidRequestError, match="left: the "):
        build.next_state(transaction(operation), head, OPTIONS)


def test_ids_of_base_paths_that_are_used_up_raise() -> None:
    base = BasePath(id=BaseId((1 << 32) - 1), is_dataset_root=True, path="memory:///b")
    state = table()
    source = replace(state, manifest=replace(state.manifest, base_paths=(base,)))
    clone = ops.Clone(is_shallow=True, ref_name="r", ref_version=Version(1), ref_path="p")
    with pytest.raises(InvalidRequestError, match="left: the "):
        build.clone(transaction(clone), source, "memory:///source", OPTIONS)
