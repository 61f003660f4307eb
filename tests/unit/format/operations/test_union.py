"""The union of operations: every known operation, and unknown newer ones."""

from __future__ import annotations

import typing

import pytest

from lancelake.format import operations as ops
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
    assert not isinstance(ops.decode(empty(case)), UnknownOperation)


@pytest.mark.parametrize("case", CASES)
def test_an_operation_is_written_under_its_own_tag(case):
    message = Transaction()
    ops.encode_into(message, ops.decode(empty(case)))

    assert message.WhichOneof("operation") == case


def test_the_union_has_one_value_per_operation_and_one_for_strangers():
    assert len(typing.get_args(Operation)) == len(CASES) + 1


def test_an_operation_of_a_newer_release_is_kept_as_bytes():
    message = Transaction.FromString(b"\x9a\x07\x03abc")  # field 115

    assert ops.decode(message) == UnknownOperation(tag=115, data=b"\x9a\x07\x03abc")


def test_an_operation_of_a_newer_release_is_written_as_it_was():
    message = Transaction()
    ops.encode_into(message, UnknownOperation(tag=115, data=b"\x9a\x07\x03abc"))

    assert message.SerializeToString() == b"\x9a\x07\x03abc"


def test_a_stranger_that_is_no_operation_has_tag_0():
    message = Transaction.FromString(b"\x48\x01")  # field 9

    assert ops.decode(message) == UnknownOperation(tag=0, data=b"\x48\x01")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("create", ops.Overwrite),
        ("append", ops.Append),
        ("delete", ops.Delete),
        ("create_index", ops.CreateIndex),
        ("merge", ops.Merge),
        ("data_replacement", ops.DataReplacement),
        ("project_rename", ops.Project),
        ("project_drop", ops.Project),
        ("update_config", ops.UpdateConfig),
        ("reserve_fragments", ops.ReserveFragments),
        ("rewrite", ops.Rewrite),
        ("restore", ops.Restore),
        ("overwrite", ops.Overwrite),
        ("stable_update", ops.Update),
    ],
)
def test_a_step_of_an_official_release_is_the_operation_it_should_be(release, step, kind):
    assert isinstance(committed(release, step).operation, kind)
