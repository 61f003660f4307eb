"""Codec of Update: moved rows."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.ids import FieldId
from lancelake.format.operations import CODECS, Update, UpdateMode
from lancelake.format.rowids import RowIdSequence
from lancelake.proto.transaction_pb2 import Transaction
from tests.unit.format.golden.files import RELEASES, committed

update = CODECS["update"]


def golden(release: str) -> Update:
    operation = committed(release, "stable_update").operation
    assert isinstance(operation, Update)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_moved_rows_bring_their_ids(release):
    (new,) = golden(release).new_fragments
    assert isinstance(new.row_ids, bytes)

    sequence = RowIdSequence.decode(new.row_ids, physical_rows=34)
    assert sequence.values().tolist() == list(range(0, 100, 3))


@pytest.mark.parametrize("release", RELEASES)
def test_rows_that_moved_are_deleted_where_they_were(release):
    (old,) = golden(release).updated_fragments

    assert (old.id, old.num_deleted_rows) == (0, 34)


@pytest.mark.parametrize("release", RELEASES)
def test_the_columns_that_were_set_are_named(release):
    assert golden(release).fields_for_preserving_frag_bitmap == (1,)


@pytest.mark.parametrize("release", RELEASES)
def test_rows_were_rewritten_and_not_columns(release):
    assert golden(release).update_mode is UpdateMode.REWRITE_ROWS


def test_a_mode_that_is_not_known_is_refused():
    message = Transaction.Update()
    message.MergeFromString(b"\x38\x09")

    with pytest.raises(UnsupportedError):
        update.decode(message)


def test_a_field_id_that_no_message_can_hold_is_corrupt():
    with pytest.raises(CorruptTableError, match="id -7"):
        update.encode(Update(fields_modified=(FieldId(-7),)))
