from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InternalError, InvalidRequestError, UnsupportedError
from lancelake.format import operations as ops
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId, Version
from lancelake.format.manifest import WriterVersion
from lancelake.txn import conflict_matrix
from tests.unit.txn.making import OPTIONS, after, fragment_ids, table

RESTORE = ops.Restore(version=Version(1))
APPEND = ops.Append(fragments=(conflict_matrix.fragment(FragmentId(0), path="new.lance"),))


def test_everything_comes_from_the_old_version() -> None:
    old = table(indices=(conflict_matrix.index("i", conflict_matrix.VALUE),))
    config = ops.UpdateConfig(config=conflict_matrix.MapUpdate(entries=FrozenMap({"a": "1"})))
    state = after(RESTORE, after(config, after(APPEND, old)), restored=old)
    assert fragment_ids(state) == [0, 1]
    assert (state.indices, state.manifest.config) == (old.indices, {})


def test_counters_do_not_go_back() -> None:
    old = table(stable=True)
    state = after(RESTORE, after(APPEND, old), restored=old).manifest
    assert (state.version, state.max_fragment_id, state.next_row_id) == (3, 2, 30)


def test_the_author_of_the_old_version_stays() -> None:
    old = table()
    author = WriterVersion(library="lance", version="0.8.0")
    old = replace(old, manifest=replace(old.manifest, writer_version=author))
    state = after(RESTORE, after(APPEND, old), restored=old).manifest
    assert state.writer_version == author
    assert state.timestamp_ns == OPTIONS.timestamp_ns


def test_a_version_without_stable_row_ids_cannot_follow_one_with() -> None:
    with pytest.raises(InvalidRequestError, match="older than the table's stable row ids"):
        after(RESTORE, table(stable=True), restored=table())


def test_a_version_that_needs_an_unknown_feature_cannot_be_restored() -> None:
    old = table()
    old = replace(old, manifest=replace(old.manifest, writer_feature_flags=1 << 20))
    with pytest.raises(UnsupportedError):
        after(RESTORE, table(), restored=old)


def test_the_old_version_must_be_handed_over() -> None:
    with pytest.raises(InternalError):
        after(RESTORE, table())
