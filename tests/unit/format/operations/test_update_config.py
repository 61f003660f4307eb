"""Codec of UpdateConfig: changes of config and metadata in both forms."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.operations import CODECS, MapUpdate, UpdateConfig
from lancelake.proto.transaction_pb2 import Transaction
from tests.unit.format.golden.files import RELEASES, committed

update_config = CODECS["update_config"]


FIELD = Transaction.UpdateConfig.FieldMetadataUpdate


@pytest.mark.parametrize("release", RELEASES)
def test_keys_that_were_set_are_read(release):
    entries = FrozenMap({"lance.some.key": "1", "other": "2"})

    assert committed(release, "update_config").operation == UpdateConfig(
        config=MapUpdate(entries=entries)
    )


def test_a_key_without_a_value_is_removed():
    message = Transaction.UpdateConfig()
    message.config_updates.update_entries.add(key="k")

    assert update_config.decode(message).config == MapUpdate(entries=FrozenMap({"k": None}))


def test_an_empty_value_is_a_value():
    message = Transaction.UpdateConfig()
    message.config_updates.update_entries.add(key="k", value="")

    assert update_config.decode(message).config == MapUpdate(entries=FrozenMap({"k": ""}))


def test_an_update_of_nothing_is_not_no_update():
    operation = UpdateConfig(table_metadata=MapUpdate(entries=FrozenMap(), replace=True))

    assert update_config.decode(update_config.encode(operation)) == operation


def test_the_old_form_sets_and_removes_keys():
    message = Transaction.UpdateConfig(upsert_values={"a": "1"}, delete_keys=["b"])

    assert update_config.decode(message) == UpdateConfig(
        config=MapUpdate(entries=FrozenMap({"a": "1", "b": None}))
    )


def test_the_old_form_replaces_metadata():
    message = Transaction.UpdateConfig(
        schema_metadata={"s": "t"}, field_metadata={4: FIELD(metadata={"f": "g"})}
    )

    assert update_config.decode(message) == UpdateConfig(
        schema_metadata=MapUpdate(entries=FrozenMap({"s": "t"}), replace=True),
        field_metadata=FrozenMap(
            {FieldId(4): MapUpdate(entries=FrozenMap({"f": "g"}), replace=True)}
        ),
    )


def test_both_forms_at_once_are_damage():
    message = Transaction.UpdateConfig(upsert_values={"a": "1"})
    message.table_metadata_updates.replace = True

    with pytest.raises(CorruptTableError):
        update_config.decode(message)


def test_a_field_id_that_cannot_be_written_is_damage():
    message = Transaction.UpdateConfig(field_metadata={1 << 31: FIELD()})

    with pytest.raises(CorruptTableError):
        update_config.decode(message)
