"""Stored vectors as queries: the vector of a row, and those of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import ColumnTypeError, InvalidRequestError
from lancelake.format.arrow_schema import public_field
from lancelake.format.ids import FieldId
from lancelake.format.index_details import describe
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.rowids.segment import U64Array
from lancelake.index.stored_segment import indexed_type
from lancelake.index.vector.metric import Metric, metric_named
from lancelake.index.vector.vectors import VectorType
from lancelake.scan.nearest import Nearest
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, addresses_of
from lancelake.scan.scored_rows import rows_at
from lancelake.scan.take import take

_VECTOR_DETAILS = "vectorindexdetails"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorColumn:
    """A column of vectors of a version."""

    snapshot: Snapshot
    path: str
    field_id: FieldId
    type: VectorType

    @staticmethod
    @names_table
    def of(snapshot: Snapshot, path: str) -> VectorColumn:
        """Find a column; refuse one without vectors."""
        field = snapshot.manifest.schema.resolve(path)[-1]
        found = VectorType.of(indexed_type(field))
        if found is None:
            shown = public_field(field).type
            raise ColumnTypeError(
                f"column {path!r} has no vectors: its type is {shown}", column=path
            )
        return VectorColumn(snapshot=snapshot, path=path, field_id=FieldId(field.id), type=found)

    @property
    def is_indexed(self) -> bool:
        """Whether there is a vector index of the column."""
        return bool(self._entries())

    @property
    def index_metric(self) -> Metric | None:
        """Metric of the index; None if there is none, or if only its files name it."""
        for entry in self._entries():
            name = describe(entry.details)[1].get("metric_type")
            if name is not None:
                return metric_named(name)
        return None

    def _entries(self) -> list[IndexMetadata]:
        return [
            entry
            for entry in self.snapshot.indices
            if entry.details is not None
            and entry.details.kind == _VECTOR_DETAILS
            and tuple(entry.fields) == (self.field_id,)
        ]

    def vectors_of(self, addresses: U64Array) -> npt.NDArray[np.float32]:
        """Return the vectors of rows as queries; rows without one are left out."""
        values = rows_at(self.snapshot, addresses, ScanRequest(columns=(self.path,))).column(0)
        return self.type.vectors(values.combine_chunks()).matrix.astype(np.float32)


@names_table
def nearest_to_row(snapshot: Snapshot, path: str, row_id: int) -> Nearest:
    """Return a search for the rows near the vector of a row."""
    column = VectorColumn.of(snapshot, path)
    addresses = addresses_of(snapshot, np.array([row_id], dtype=np.uint64))
    if addresses[0] == MISSING:
        raise InvalidRequestError(f"there is no row with the id {row_id}")
    queries = column.vectors_of(addresses)
    if not len(queries):
        raise InvalidRequestError(f"row {row_id} has no vector in column {path!r}")
    return Nearest(column=path, queries=queries, has_several=column.type.is_multi)


def sampled_vectors(column: VectorColumn, numbers: U64Array) -> npt.NDArray[np.float32]:
    """Return the vectors of rows by their number among the live rows, as queries."""
    request = ScanRequest(columns=(), with_row_address=True)
    found = take(column.snapshot, numbers, request)
    return column.vectors_of(found.column(0).to_numpy())
