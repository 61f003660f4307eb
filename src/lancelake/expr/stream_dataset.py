"""Streams as datasets that DataFusion reads."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.dataset as pads


class StreamDataset(pads.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Dataset for DataFusion: one fragment whose batches are read once."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = self._noted(batches)
        self.failure: BaseException | None = None

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        return self._schema

    def get_fragments(self, filter: object = None) -> list[StreamDataset]:  # noqa: ARG002  # pyarrow's signature
        """Return the stream itself as the only fragment."""
        return [self]

    def scanner(self, *_: object, columns: list[str] | None = None, **__: object) -> StreamDataset:
        """Return the stream itself, reduced to these columns."""
        if columns is None or columns == self._schema.names:
            return self
        selected = pa.schema([self._schema.field(name) for name in columns])
        return StreamDataset(selected, (batch.select(columns) for batch in self._batches))

    def _noted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches, and keep the error that ends them."""
        try:
            yield from batches
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failure = error
            raise

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the batches."""
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        return self._batches
