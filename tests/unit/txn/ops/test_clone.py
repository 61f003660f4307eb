from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import BasePath
from lancelake.format.ids import BaseId, Version
from lancelake.format.manifest import FeatureFlags
from lancelake.txn import build, conflict_matrix
from lancelake.txn.conflict_matrix import FIRST, VALUE, index, without_rows
from lancelake.txn.options import TableState
from tests.unit.txn.making import OPTIONS, after, table, transaction

URI = "memory:///source"
SHALLOW = ops.Clone(is_shallow=True, ref_name="dev", ref_version=Version(1), ref_path=URI)


def cloned(source: TableState, op: ops.Clone = SHALLOW) -> TableState:
    return build.clone(transaction(op), source, URI, OPTIONS)


def source() -> TableState:
    state = table(indices=(index("i", VALUE, FIRST),))
    fragments = (without_rows(FIRST, 1), state.manifest.fragments[1])
    return replace(state, manifest=replace(state.manifest, fragments=fragments))


def test_files_stay_at_the_source() -> None:
    state = cloned(source())
    first = state.manifest.fragments[0]
    assert first.deletion_file is not None
    assert (first.files[0].base_id, first.deletion_file.base_id, state.indices[0].base_id) == (
        0,
        0,
        0,
    )
    (base,) = state.manifest.base_paths
    assert (base.id, base.name, base.path, base.is_dataset_root) == (0, "dev", URI, True)


def test_the_version_number_is_that_of_the_source() -> None:
    assert cloned(source()).manifest.version == 1


def test_bases_are_flagged() -> None:
    assert cloned(source()).manifest.reader_feature_flags & FeatureFlags.BASE_PATHS


def test_files_of_other_bases_stay_there() -> None:
    state = cloned(cloned(source()))
    assert [b.id for b in state.manifest.base_paths] == [0, 1]
    assert state.manifest.fragments[0].files[0].base_id == 0
    assert state.indices[0].base_id == 0


def test_a_branch_carries_its_name() -> None:
    assert cloned(source(), replace(SHALLOW, branch_name="b")).manifest.branch == "b"


def test_a_deep_copy_owns_its_files() -> None:
    state = cloned(cloned(source()), replace(SHALLOW, is_shallow=False))
    assert state.manifest.base_paths == ()
    assert {f.base_id for each in state.manifest.fragments for f in each.files} == {None}
    assert state.indices[0].base_id is None
    assert not state.manifest.reader_feature_flags & FeatureFlags.BASE_PATHS


def test_a_clone_cannot_follow_a_version() -> None:
    with pytest.raises(InvalidRequestError, match="first version"):
        after(SHALLOW)


def test_only_a_clone_clones() -> None:
    op = ops.ReserveFragments(num_fragments=1)
    with pytest.raises(InvalidRequestError, match="does not clone"):
        build.clone(transaction(op), source(), URI, OPTIONS)


def test_a_base_takes_the_next_id() -> None:
    state = table()
    other = replace(shapes_base(), id=BaseId(7))
    state = replace(state, manifest=replace(state.manifest, base_paths=(other,)))
    assert [b.id for b in cloned(state).manifest.base_paths] == [7, 8]


def shapes_base() -> BasePath:
    op = conflict_matrix.shapes()[ops.UpdateBases][0].operation
    assert isinstance(op, ops.UpdateBases)
    return op.new_bases[0]
