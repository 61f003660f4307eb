from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.manifest import FeatureFlags
from lancelake.format.operations import MapUpdate, Operation, ReserveFragments, UpdateConfig
from lancelake.format.primary_key import KEY as KEY_MARK
from lancelake.txn.conflict_matrix import KEY, VALUE
from lancelake.txn.rules import OK, Incompatible, Retryable, Verdict
from tests.unit.txn.making import after, unseen, verdict


def update(*, replace: bool = False, **entries: str | None) -> MapUpdate:
    return MapUpdate(entries=FrozenMap(entries), replace=replace)


SOME = after(UpdateConfig(config=update(a="1", b="2"), table_metadata=update(m="1")))


def test_keys_are_set_and_removed() -> None:
    state = after(UpdateConfig(config=update(a=None, c="3")), SOME)
    assert state.manifest.config == {"b": "2", "c": "3"}


def test_a_map_can_be_replaced() -> None:
    state = after(UpdateConfig(config=update(replace=True, c="3", d=None)), SOME)
    assert state.manifest.config == {"c": "3"}


def test_the_other_maps_stay() -> None:
    state = after(UpdateConfig(config=update(c="3")), SOME)
    assert state.manifest.table_metadata == {"m": "1"}


def test_config_is_flagged_for_writers_only() -> None:
    flags = SOME.manifest.writer_feature_flags, SOME.manifest.reader_feature_flags
    assert flags == (FeatureFlags.TABLE_CONFIG, 0)


def test_metadata_of_schema_and_fields_is_text_as_bytes() -> None:
    op = UpdateConfig(
        schema_metadata=update(k="v"), field_metadata=FrozenMap({VALUE: update(note="ü")})
    )
    schema = after(op).manifest.schema
    assert schema.metadata == {"k": b"v"}
    assert schema.by_id()[VALUE].metadata == {"note": "ü".encode()}


def test_an_unknown_field_is_refused() -> None:
    op = UpdateConfig(field_metadata=FrozenMap({FieldId(9): update(note="x")}))
    with pytest.raises(InvalidRequestError, match="field id 9"):
        after(op)


def test_marks_of_the_primary_key_take_effect() -> None:
    op = UpdateConfig(field_metadata=FrozenMap({KEY: update(**{KEY_MARK: "true"})}))
    assert [f.name for f in after(op).manifest.schema.primary_key()] == ["id"]


def test_a_nullable_field_cannot_be_part_of_the_key() -> None:
    op = UpdateConfig(field_metadata=FrozenMap({VALUE: update(**{KEY_MARK: "true"})}))
    with pytest.raises(InvalidRequestError, match="must not be nullable"):
        after(op)


@pytest.mark.parametrize(
    ("mine", "theirs", "goes"),
    [
        (update(a="1"), update(a="2"), False),
        (update(a=None), update(a="2"), False),
        (update(a=None), update(a=None), True),
        (update(b="1"), update(replace=True, a="1"), True),
    ],
)
def test_config_competes_key_by_key(mine: MapUpdate, theirs: MapUpdate, goes: bool) -> None:
    found = verdict(UpdateConfig(config=mine), UpdateConfig(config=theirs))
    assert _goes(found) is goes


@pytest.mark.parametrize(
    ("mine", "theirs", "goes"),
    [
        (update(a="1"), update(b="2"), True),
        (update(a=None), update(a=None), False),
        (update(b="1"), update(replace=True, a="1"), False),
    ],
)
def test_table_metadata_competes_as_a_whole_when_replaced(
    mine: MapUpdate, theirs: MapUpdate, goes: bool
) -> None:
    found = verdict(UpdateConfig(table_metadata=mine), UpdateConfig(table_metadata=theirs))
    assert _goes(found) is goes


def _goes(found: Verdict) -> bool:
    assert found == OK or isinstance(found, Incompatible)
    return found == OK


MINE = UpdateConfig(config=update(a="1", gone=None), table_metadata=update(m="1"))


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (UpdateConfig(config=update(other="1")), OK),
        (UpdateConfig(config=update(a="2")), Incompatible("both set a")),
        (UpdateConfig(table_metadata=update(m="1")), Incompatible("both set m")),
        (ReserveFragments(num_fragments=1), OK),
    ],
    ids=["other", "config", "table", "none"],
)
def test_settings_after_unknown_commits(theirs: Operation, expected: Verdict) -> None:
    assert unseen(MINE, theirs) == expected


def test_all_settings_are_replaced_only_if_no_unknown_commit_changed_one() -> None:
    mine = UpdateConfig(config=update(replace=True, a="1"))
    assert unseen(mine, UpdateConfig(config=update(b="1"))) == Incompatible("both set b")


def test_metadata_of_the_schema_is_set_only_if_no_unknown_commit_changed_the_schema() -> None:
    mine = UpdateConfig(schema_metadata=update(a="1"))
    assert unseen(mine, UpdateConfig(config=update(b="1"))) == OK
    theirs = UpdateConfig(field_metadata=FrozenMap({VALUE: update(b="1")}))
    assert unseen(mine, theirs) == Retryable("the schema changed")
