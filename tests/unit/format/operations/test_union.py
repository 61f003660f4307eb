"""The union of operations: every known operation, and unknown newer ones."""

from __future__ import annotations

import typing

import pytest

from lancelake.format import operations
from lancelake.format.operations import Operation, UnknownOperation
from lancelake.proto.transaction_pb2 import Transaction
from tests.unit.format.golden.files import RELEASES, committed

CASES = [f.name for f in Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields]


def empty(case: str) -> Transaction:
    message = Transaction()
    getattr(message, case).SetInParent()
    return message


@pytest.mark.parametrize("case", CASES)
def test_an_operation_of_the_protocol_is_known(case):
    assert not isinstance(operations.decode(empty(case)), UnknownOperation)


@pytest.mark.parametrize("case", CASES)
def test_an_operation_is_written_under_its_own_tag(case):
    message = Transaction()
    operations.encode_into(message, operations.decode(empty(case)))

    assert message.WhichOneof("operation") == case


def test_the_union_has_one_value_per_operation_and_one_for_strangers():
    assert len(typing.get_args(Operation)) == len(CASES) + 1


def test_an_operation_of_a_newer_release_is_kept_as_bytes():
    message = Transaction.FromString(b"\x9a\x07\x03abc")  # field 115

    assert operations.decode(message) == UnknownOperation(tag=115, data=b"\x9a\x07\x03abc")


def test_an_operation_of_a_newer_release_is_written_as_it_was():
    message = Transaction()
    operations.encode_into(message, UnknownOperation(tag=115, data=b"\x9a\x07\x03abc"))

    assert message.SerializeToString() == b"\x9a\x07\x03abc"


def test_a_stranger_that_is_no_operation_has_tag_0():
    message = Transaction.FromString(b"\x48\x01")  # field 9

    assert operations.decode(message) == UnknownOperation(tag=0, data=b"\x48\x01")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("create", operations.Overwrite),
        ("append", operations.Append),
        ("delete", operations.Delete),
        ("create_index", operations.CreateIndex),
        ("merge", operations.Merge),
        ("data_replacement", operations.DataReplacement),
        ("project_rename", operations.Project),
        ("project_drop", operations.Project),
        ("update_config", operations.UpdateConfig),
        ("reserve_fragments", operations.ReserveFragments),
        ("rewrite", operations.Rewrite),
        ("restore", operations.Restore),
        ("overwrite", operations.Overwrite),
        ("stable_update", operations.Update),
    ],
)
def test_a_step_of_an_official_release_is_the_operation_it_should_be(release, step, kind):
    assert isinstance(committed(release, step).operation, kind)
