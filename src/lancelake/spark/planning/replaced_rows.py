"""Rows that an overwrite replaces, selected by a condition that only Spark can evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.format.column_path import quoted_name
from lancelake.spark.jvm.catalyst import (
    attribute_id,
    column,
    ids_named,
    items,
    known_as,
    running_command,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.reading.target_frame import staged_frame, target_frame
from lancelake.spark.reading.text_conditions import others, rows_of
from lancelake.table.row_steps.find import FoundRows

_ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByExpression:
    """Rows to replace, by a resolved expression."""

    gateway: Gateway
    expression: Any
    attributes: dict[str, Any]
    """The columns that the expression refers to, by name."""

    @staticmethod
    def of(gateway: Gateway) -> RowsByExpression:
        """Return the condition of the overwrite that is running."""
        command = running_command(gateway, "OverwriteByExpression")
        condition = command.deleteExpr()
        named = ids_named(condition)
        output = items(command.table().output())
        attributes = {a.name(): a for a in output if attribute_id(a) in named}
        return RowsByExpression(gateway=gateway, expression=condition, attributes=attributes)

    @property
    def text(self) -> str:
        """The condition in SQL."""
        return str(self.expression.sql())

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        rows = target_frame(self.gateway.spark, at, list(self.attributes), [_ADDRESS])
        chosen = rows.select(*self._bound(), f.col(_ADDRESS))
        return rows_of(chosen.where(self._condition), at)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        rows = staged_frame(self.gateway.spark, written, list(self.attributes))
        return not others(rows.select(*self._bound()), self._condition).isEmpty()

    @property
    def _condition(self) -> Column:
        return column(self.gateway, self.expression)

    def _bound(self) -> list[Column]:
        """Return the columns with the identities that the expression refers to."""
        return [
            known_as(self.gateway, f.col(quoted_name(name)), attribute, name)
            for name, attribute in self.attributes.items()
        ]
