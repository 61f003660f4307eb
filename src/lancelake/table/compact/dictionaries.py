"""Remove nulls from dictionary values, since Arrow cannot concatenate such dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.data.arrays.conform import Conformer
from lancelake.data.arrays.retype import retype
from lancelake.data.arrays.text import InvalidText
from lancelake.format.computed_once import computed_once
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema


@dataclass(frozen=True)
class Joinable:
    """Rewrites batches so that they can be concatenated."""

    schema: Schema
    version: FileVersion

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same values."""
        fields = self._conform.schema.fields
        if not fields:
            return batch
        conformed = self._conform(batch.select([field.name for field in fields]))
        for field, column in zip(fields, conformed.columns, strict=True):
            position = batch.schema.get_field_index(field.name)
            shown = batch.schema.field(position)
            batch = batch.set_column(position, shown, retype(column, shown.type))
        return batch

    @computed_once
    def _conform(self) -> Conformer:
        fields = tuple(field for field in self.schema.fields if _has_words(field))
        return Conformer(replace(self.schema, fields=fields), self.version, InvalidText.TRUST)


def _has_words(field: Field) -> bool:
    return any(node.logical_type.startswith("dict:") for node in field.walk())
