"""Verdicts after commits that are not known."""

from __future__ import annotations

import pytest

from lancelake.format import operations as ops
from lancelake.txn import conflict_matrix
from lancelake.txn.rules import Retryable
from tests.unit.txn.making import unseen

KEPT = (
    ops.Append,
    ops.Overwrite,
    ops.ReserveFragments,
    ops.UpdateBases,
    ops.UpdateConfig,
)


@pytest.mark.parametrize("kind", [k for k in conflict_matrix.shapes() if k not in KEPT])
def test_an_operation_that_depends_on_what_was_read_is_made_again(
    kind: type[ops.Operation],
) -> None:
    for example in conflict_matrix.shapes()[kind]:
        assert unseen(example.operation) == Retryable("its changes are not known")
