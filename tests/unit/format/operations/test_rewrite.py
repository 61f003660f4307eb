"""Codec of Rewrite: groups, in every form."""

from __future__ import annotations

import uuid

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.format.operations import CODECS, Rewrite, RewrittenIndex
from lancelake.proto import table_pb2
from lancelake.proto.transaction_pb2 import Transaction
from tests.unit.format.golden.files import RELEASES, committed

rewrite = CODECS["rewrite"]


def golden(release: str, step: str) -> Rewrite:
    operation = committed(release, step).operation
    assert isinstance(operation, Rewrite)
    return operation


@pytest.mark.parametrize("release", RELEASES)
def test_old_fragments_are_replaced_by_one_with_a_reserved_id(release):
    (group,) = golden(release, "rewrite").groups

    assert [f.id for f in (*group.old_fragments, *group.new_fragments)] == [0, 1, 2, 3]


@pytest.mark.parametrize("release", RELEASES)
def test_an_index_gets_a_new_uuid(release):
    (index,) = golden(release, "rewrite").rewritten_indices

    assert index.old_id != index.new_id


@pytest.mark.parametrize("release", RELEASES)
def test_with_stable_row_ids_no_index_is_rewritten(release):
    assert golden(release, "stable_rewrite").rewritten_indices == ()


def test_the_form_without_groups_is_one_group():
    old, new = table_pb2.DataFragment(id=1), table_pb2.DataFragment(id=2)
    (group,) = rewrite.decode(Transaction.Rewrite(old_fragments=[old], new_fragments=[new])).groups

    assert ([f.id for f in group.old_fragments], [f.id for f in group.new_fragments]) == ([1], [2])


def test_a_rewritten_index_is_read_as_it_was_written():
    index = RewrittenIndex(
        old_id=uuid.UUID(int=1),
        new_id=uuid.UUID(int=2),
        new_details=IndexDetails(type_url="u", value=b"v"),
        new_index_version=3,
        new_index_files=(IndexFile(path="p", size_bytes=4),),
    )
    operation = Rewrite(groups=(), rewritten_indices=(index,))

    assert rewrite.decode(rewrite.encode(operation)) == operation


def test_a_rewritten_index_without_a_uuid_is_damage():
    message = Transaction.Rewrite(rewritten_indices=[Transaction.Rewrite.RewrittenIndex()])

    with pytest.raises(CorruptTableError):
        rewrite.decode(message)
