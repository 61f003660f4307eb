from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import BasePath, FileVersion
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.operations import Overwrite, ReserveFragments
from lancelake.txn import conflict_matrix
from lancelake.txn.options import VersionChoices
from lancelake.txn.rules import OK, Incompatible
from tests.unit.txn.making import OPTIONS, after, fragment_ids, row_id_list, table, unseen

NEW = conflict_matrix.fragment(FragmentId(0), path="new.lance")
OVERWRITE = Overwrite(fragments=(NEW,), schema=conflict_matrix.table().manifest.schema)


def test_fragment_ids_continue() -> None:
    assert fragment_ids(after(OVERWRITE)) == [2]


def test_row_ids_continue() -> None:
    state = after(OVERWRITE, table(stable=True))
    assert row_id_list(state.manifest.fragments[0]) == list(range(20, 30))
    assert state.manifest.next_row_id == 30


def test_indices_go() -> None:
    assert (
        after(
            OVERWRITE, table(indices=(conflict_matrix.index("i", conflict_matrix.VALUE),))
        ).indices
        == ()
    )


def test_settings_bases_and_branch_stay() -> None:
    before = table()
    base = BasePath(id=BaseId(1), is_dataset_root=False, path="memory:///b")
    manifest = replace(
        before.manifest,
        config=FrozenMap({"a": "1", "b": "2"}),
        table_metadata=FrozenMap({"m": "1"}),
        base_paths=(base,),
        branch="dev",
    )
    op = replace(OVERWRITE, config_upsert_values=FrozenMap({"b": "3"}))
    state = after(op, replace(before, manifest=manifest)).manifest
    assert state.config == {"a": "1", "b": "3"}
    assert state.table_metadata == {"m": "1"}
    assert (state.base_paths, state.branch) == ((base,), "dev")


def test_a_table_that_exists_gets_no_bases() -> None:
    base = BasePath(id=BaseId(0), is_dataset_root=False, path="memory:///b")
    with pytest.raises(InvalidRequestError, match="only be set when a table is created"):
        after(replace(OVERWRITE, initial_bases=(base,)))


def test_the_file_version_can_change() -> None:
    file = replace(NEW.files[0], file_minor_version=2)
    op = replace(OVERWRITE, fragments=(replace(NEW, files=(file,)),))
    options = replace(OPTIONS, choices=VersionChoices(data_version=FileVersion.V2_2))
    assert after(op, options=options).manifest.data_version is FileVersion.V2_2


def test_flags_of_what_is_gone_go() -> None:
    before = table()
    covering = replace(before, manifest=replace(before.manifest, reader_feature_flags=128))
    assert after(OVERWRITE, covering).manifest.reader_feature_flags == 0


def test_rows_are_replaced_after_unknown_commits() -> None:
    assert unseen(OVERWRITE, OVERWRITE, ReserveFragments(num_fragments=1)) == OK


def test_settings_of_unknown_commits_are_not_replaced() -> None:
    mine = replace(OVERWRITE, config_upsert_values=FrozenMap({"a": "1"}))
    theirs = replace(OVERWRITE, config_upsert_values=FrozenMap({"a": "2"}))
    assert unseen(mine, theirs) == Incompatible("both set a")
    assert unseen(mine, OVERWRITE) == OK
