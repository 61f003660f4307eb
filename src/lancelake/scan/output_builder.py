"""Output builder: computes the requested outputs from stored columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from lancelake.data.arrays.public_values import to_public
from lancelake.data.row_meta import META_NAMES, MetaColumn
from lancelake.expr.arrays import at_path
from lancelake.expr.engine import Evaluator
from lancelake.scan.outputs import ColumnOutput, ExpressionOutput, MetaOutput, Output
from lancelake.scan.plan import ScanSpec

MetaValues = Callable[[MetaColumn], pa.Array]


@dataclass(frozen=True, slots=True)
class Finisher:
    """Builds output batches."""

    outputs: tuple[Output, ...]
    schema: pa.Schema
    _evaluators: dict[str, Evaluator]
    _are_columns: bool = False
    """Whether the outputs are whole columns under their own names."""

    @staticmethod
    def of(spec: ScanSpec) -> Finisher:
        """Prepare the outputs of a scan."""
        evaluators = {
            output.name: Evaluator(output.expression)
            for output in spec.outputs
            if isinstance(output, ExpressionOutput)
        }
        are_columns = all(
            isinstance(output, ColumnOutput) and output.path == (output.name,)
            for output in spec.outputs
        )
        return Finisher(spec.outputs, spec.output_schema, evaluators, are_columns)

    def __call__(self, batch: pa.RecordBatch, meta: MetaValues) -> pa.RecordBatch:
        """Return the outputs for the rows of a batch."""
        if self._are_columns and batch.schema.equals(self.schema, check_metadata=True):
            return batch
        if not self.outputs:
            return pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None])
            )
        columns = [
            self._column(output, field.type, batch, meta)
            for output, field in zip(self.outputs, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(
        self, output: Output, target: pa.DataType, batch: pa.RecordBatch, meta: MetaValues
    ) -> pa.Array:
        match output:
            case ColumnOutput():
                return to_public(output.shown, at_path(batch, output.path), target)
            case MetaOutput():
                return meta(output.meta)
            case ExpressionOutput():
                return self._evaluators[output.name](_with_meta(output, batch, meta))
            case _:
                assert_never(output)


def needed_paths(outputs: Sequence[Output]) -> tuple[tuple[str, ...], ...]:
    """Return the paths of all columns that the outputs need."""
    paths: dict[tuple[str, ...], None] = {}
    for output in outputs:
        if isinstance(output, ColumnOutput):
            paths[output.path] = None
        elif isinstance(output, ExpressionOutput):
            paths |= dict.fromkeys(p for p in output.expression.paths if p[0] not in META_NAMES)
    return tuple(paths)


def _with_meta(output: ExpressionOutput, batch: pa.RecordBatch, meta: MetaValues) -> pa.RecordBatch:
    named = {path[0] for path in output.expression.paths}
    for name in META_NAMES:
        if name in named and name not in batch.schema.names:
            batch = batch.append_column(name, meta(MetaColumn(name)))
    return batch
