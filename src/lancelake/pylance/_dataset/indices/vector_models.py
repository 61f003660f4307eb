"""Dataset methods that return the models of vector indices."""

from __future__ import annotations

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IndexNotFoundError, InvalidRequestError
from lancelake.index.stored_segment import StoredIndices
from lancelake.index.vector.segment import VectorSegment
from lancelake.pylance._values.vector_models import IvfModel, vector_lists


class DatasetVectorModels:
    """Methods that return the models of vector indices."""

    _snapshot: Snapshot

    def get_ivf_model(self, index_name: str) -> IvfModel:
        """Return the partitions of a vector index.

        Args:
            index_name: The name of the index.

        Returns:
            The centers of the partitions and the metric.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> built = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
            >>> docs.get_ivf_model("vector_idx").num_partitions
            1
        """
        for segment in StoredIndices(self._snapshot).segments(index_name):
            opened = segment.open()
            if isinstance(opened, VectorSegment):
                lists = vector_lists(opened.model.partitions.centers)
                return IvfModel(lists, opened.model.metric.value)
        problem = f"there is no vector index {index_name!r}"
        raise IndexNotFoundError(problem, table=self._snapshot.location.uri)

    def centroids(
        self, *, index_name: str | None = None, column: str | None = None
    ) -> pa.FixedSizeListArray:
        """Return the centers of the partitions of an index, or of the first one of a column.

        Args:
            index_name: The name of the index.
            column: The column, instead of the name.

        Returns:
            One vector per partition.

        Raises:
            IndexNotFoundError: There is no such index.

        Examples:
            >>> built = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
            >>> len(docs.centroids(column="vector"))
            1
        """
        if index_name is None:
            if column is None:
                raise InvalidRequestError("Must provide 'index_name' or 'column'.")
            index_name = self._first_vector_index(column)
        return self.get_ivf_model(index_name).centroids

    def _first_vector_index(self, column: str) -> str:
        stored = StoredIndices(self._snapshot)
        found = self._snapshot.manifest.schema.find(column)
        for entry in self._snapshot.indices:
            if found is None or entry.fields != (found[-1].id,):
                continue
            segment = stored.segment(entry)
            if segment is not None and isinstance(segment.open(), VectorSegment):
                return entry.name
        problem = f"No IVF index for column '{column}'"
        raise IndexNotFoundError(problem, table=self._snapshot.location.uri)
