"""Batch UDFs: user-defined functions that compute columns, with checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from lancelake.core.values.metadata import from_bytes, to_bytes
from lancelake.core.values.reads import ScanRequest
from lancelake.core.values.writes import BatchFunction, Checkpoint, as_batch
from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.fragment_metadata import (
    FragmentMetadata,
    from_fragment,
    to_fragment,
)
from lancelake.pylance._values.opened import call_text

__all__ = ["BatchUDF", "BatchUDFCheckpoint", "batch_udf"]

_ROW_ID = "_rowid"
_ROW_ADDRESS = "_rowaddr"


class Readable(Protocol):
    """A table or a fragment, from which a sample row can be read."""

    def to_batches(self, **kwargs: Any) -> Iterable[pa.RecordBatch]:
        """Scan batch by batch."""
        ...


class BatchUDFCheckpoint:
    """Results of a function, stored in a SQLite file until they are committed."""

    class BatchInfo(NamedTuple):
        """Identifies a batch of a fragment."""

        fragment_id: int
        batch_index: int

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._checkpoint = Checkpoint(path=Path(path))

    def __repr__(self) -> str:
        return call_text(self, str(self.path))

    def cleanup(self) -> None:
        """Delete the file."""
        self._checkpoint.remove()

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """Return the stored result for a batch."""
        return self._checkpoint.batch(_name(info.fragment_id), info.batch_index)

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Store the result for a batch."""
        self._checkpoint.keep_batch(_name(info.fragment_id), info.batch_index, batch)

    def get_fragment(self, fragment_id: int) -> str | None:
        """Return the stored fragment, as JSON."""
        stored = self._checkpoint.fragment(_name(fragment_id))
        if stored is None:
            return None
        (fragment,) = from_bytes(stored)
        return json.dumps(from_fragment(fragment).to_json())

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Store a fragment, given as JSON, in place of its batches."""
        stored = to_fragment(FragmentMetadata.from_json(fragment))
        self._checkpoint.keep_fragment(_name(fragment_id), to_bytes([stored]))


class BatchUDF:
    """A function from batches of a table to batches of new columns."""

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | Path | None = None,
    ) -> None:
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __repr__(self) -> str:
        name = getattr(self.func, "__name__", repr(self.func))
        return call_text(self, name, output_schema=self.output_schema)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function directly."""
        return self.func(batch)


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | Path | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Decorate a function for `add_columns`.

    Args:
        output_schema: Schema of the new columns; without it the function is called with one row to
            infer it.
        checkpoint_file: File in which results are stored, so that a run that failed or was killed
            is resumed.

    Examples:
        >>> @lance.batch_udf(pa.schema([pa.field("length", pa.int32())]))
        ... def length(batch):
        ...     return pa.record_batch([pa.compute.utf8_length(batch["name"])], ["length"])
        >>> ds.add_columns(length, read_columns=["name"])
        >>> ds.to_table(["length"]).to_pydict()
        {'length': [3, 3, 2]}
    """

    def decorate(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return decorate


def to_function(
    udf: BatchUDF | Callable[[pa.RecordBatch], Any],
    source: Readable,
    read_columns: list[str] | None,
    batch_size: int | None,
) -> BatchFunction:
    """Return a function with everything needed to run it over a table or a fragment."""
    columns = None if read_columns is None else [c for c in read_columns if c not in _META]
    asked = set(read_columns or ())
    request = ScanRequest(
        columns=None if columns is None else tuple(columns),
        with_row_id=_ROW_ID in asked,
        with_row_address=_ROW_ADDRESS in asked,
        batch_size=batch_size,
    )
    function = udf if isinstance(udf, BatchUDF) else BatchUDF(udf)
    if function.output_schema is None:
        function.output_schema = _sample(function, source, request, is_plain=function is not udf)
    return BatchFunction(
        function=function.func,
        output_schema=function.output_schema,
        request=request,
        checkpoint=None if function.cache is None else function.cache._checkpoint,
    )


_META = (_ROW_ID, _ROW_ADDRESS)


def _sample(udf: BatchUDF, source: Readable, request: ScanRequest, *, is_plain: bool) -> pa.Schema:
    """Call a function with one row and return the schema of the result.

    An object that is plainly callable might not be meant to be a function of batches at all.
    """
    columns = None if request.columns is None else list(request.columns)
    rows = source.to_batches(
        limit=1,
        columns=columns,
        with_row_id=request.with_row_id,
        with_row_address=request.with_row_address,
    )
    batch = next((batch for batch in rows if batch.num_rows), None)
    if batch is None:
        msg = "the output schema of the function cannot be inferred from an empty table"
        raise InvalidRequestError(msg, action="Set output_schema.")
    try:
        result = as_batch(udf(batch))
    except Exception as error:
        if not is_plain:
            raise
        msg = (
            "transforms must be a BatchUDF, dict, map function, or ReaderLike value. Received "
            f"{type(udf.func)}, which is callable, but gave an error when called with a batch of "
            f"data: {error}"
        )
        raise TypeError(msg) from error
    if not isinstance(result, pa.RecordBatch):
        msg = f"the function must return a batch, a table or a data frame, not {type(result)}"
        raise TypeError(msg)
    return result.schema


def _name(fragment_id: int) -> str:
    return f"fragment {fragment_id}"
