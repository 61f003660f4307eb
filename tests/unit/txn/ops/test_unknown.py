from __future__ import annotations

import pytest

from lancelake.errors import UnsupportedError
from lancelake.format.operations import Operation, UnknownOperation
from lancelake.txn import conflict_matrix
from lancelake.txn.build import conflicts
from lancelake.txn.rules import Context, Incompatible
from tests.unit.txn.making import after, table

STRANGER = UnknownOperation(tag=115, data=b"")
CONTEXT = Context(base=table(), theirs_after=table())


def test_it_cannot_be_carried_out() -> None:
    with pytest.raises(UnsupportedError, match="115"):
        after(STRANGER)


@pytest.mark.parametrize("kind", conflict_matrix.shapes(), ids=lambda k: str(k.__name__))
def test_nothing_goes_with_it(kind: type[Operation]) -> None:
    known = conflict_matrix.shapes()[kind][0].operation
    assert isinstance(conflicts(known, STRANGER, CONTEXT), Incompatible)
    assert isinstance(conflicts(STRANGER, known, CONTEXT), Incompatible)
