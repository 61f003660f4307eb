"""The transaction envelope is read and written without loss."""

from __future__ import annotations

import pickle

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.operations import (
    COMMIT_MESSAGE,
    Restore,
    Transaction,
    UnknownOperation,
    decode_transaction,
    encode_transaction,
)
from lancelake.proto import transaction_pb2
from tests.unit.format.golden.files import RELEASES, STEPS, committed, read


def restored(**values: object) -> Transaction:
    return Transaction(
        read_version=Version(3),
        uuid="u",
        operation=Restore(version=Version(1)),
        **values,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_transaction_by_an_official_release_is_written_as_it_was(release, step):
    data = read(release, f"{step}.txn")
    again = encode_transaction(decode_transaction(data))

    assert transaction_pb2.Transaction.FromString(again) == transaction_pb2.Transaction.FromString(
        data
    )


@pytest.mark.parametrize("release", RELEASES)
def test_the_transaction_of_a_new_table_read_nothing(release):
    assert committed(release, "create").read_version == 0


def test_the_message_of_a_commit_is_a_property():
    assert restored(properties=FrozenMap({COMMIT_MESSAGE: "why"})).message == "why"


def test_a_commit_may_have_no_message():
    assert restored().message is None


def test_a_transaction_without_an_operation_is_kept():
    found = decode_transaction(transaction_pb2.Transaction(read_version=1).SerializeToString())

    assert found.operation == UnknownOperation(tag=0, data=b"")


@pytest.mark.parametrize("data", [b"\xff", b"\x12\x05ab", b"\x12\x01\xff"])
def test_damaged_bytes_are_reported(data):
    with pytest.raises(CorruptTableError):
        decode_transaction(data)


@pytest.mark.parametrize("step", STEPS)
def test_a_transaction_survives_pickling(step):
    read_in = committed("14.0.2", step)

    assert pickle.loads(pickle.dumps(read_in)) == read_in
