"""The vector column of a search, and the metric of its distances."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ColumnTypeError, InvalidRequestError
from lancelake.format.arrow_schema import public_field
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field
from lancelake.index.stored_segment import indexed_type
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.nearest import QUERY_INDEX, Nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTarget:
    """A vector column."""

    path: str
    field_id: FieldId
    type: VectorType

    def ensure_metric(self, metric: Metric) -> None:
        """Refuse a metric that is not defined for the vectors."""
        if not self.type.supports(metric):
            problem = f"Distance type {metric.value} does not support {self.type.element.value}"
            raise InvalidRequestError(f"{problem} vectors of column {self.path!r}")


def resolve_target(snapshot: Snapshot, nearest: Nearest) -> VectorTarget:
    """Find the column of a search; refuse one without vectors, and queries of another size."""
    trail = _trail(snapshot, nearest.column)
    dtype = indexed_type(trail[-1])
    found = VectorType.of(dtype)
    if found is None:
        shown = public_field(trail[-1]).type
        problem = f"Query column {nearest.column} must be a vector. Got {shown}."
        raise ColumnTypeError(problem, column=nearest.column)
    size = nearest.queries.shape[1]
    if size != found.dimension:
        problem = f"Query vector size {size} does not match index column size {found.dimension}"
        raise InvalidRequestError(problem, column=nearest.column)
    is_batch = nearest.has_several and not found.is_multi
    if is_batch and QUERY_INDEX in snapshot.manifest.schema.names:
        problem = f"several queries need the column name {QUERY_INDEX!r}, which the table has"
        raise InvalidRequestError(problem)
    path = snapshot.manifest.schema.path_of(trail[-1].id) or nearest.column
    target = VectorTarget(path=path, field_id=FieldId(trail[-1].id), type=found)
    if nearest.metric is not None:
        target.ensure_metric(nearest.metric)
    return target


def _trail(snapshot: Snapshot, column: str) -> tuple[Field, ...]:
    schema = snapshot.manifest.schema
    found = schema.find(column)
    if found is None:
        names = [name for name in schema.names if name.lower() == column.lower()]
        found = schema.find(names[0]) if len(names) == 1 else None
    if found is None:
        problem = f"Embedding column {column} is not in the dataset"
        raise InvalidRequestError(problem, column=column)
    return found
