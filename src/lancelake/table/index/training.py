"""Models of a vector index, trained without building it."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.index.kind import Parameters, TrainedKind
from lancelake.table.index.request import IndexRequest, chosen_fragments, resolve
from lancelake.table.index.rows import build_input


@names_table
def trained_parameters(base: Snapshot, request: IndexRequest) -> Parameters:
    """Train on a sample of rows; builds with the parameters returned have the same model."""
    target = resolve(base, request)
    kind = target.kind
    if not isinstance(kind, TrainedKind):
        raise InvalidRequestError(f"{kind.name} indices are not trained")
    fragments = chosen_fragments(base, request.fragment_ids)
    stored = kind.stored_ids(0, has_stable_row_ids=base.manifest.has_stable_row_ids)
    rows = build_input(base, target, fragments, stored, parameters=request.parameters)
    return kind.trained(rows)
