"""Rows that an overwrite replaces, selected by a condition that only Spark can evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as f

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.format.column_path import quoted_name
from lancelake.format.fragment import Fragment
from lancelake.spark.jvm.catalyst import (
    attribute_id,
    column,
    ids_named,
    items,
    known_as,
    running_command,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.reading.target_frame import target_frame
from lancelake.spark.reading.text_conditions import rows_of
from lancelake.table.row_steps.find import FoundRows

_ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByExpression:
    """Rows to replace, by a resolved expression; any rows may replace them."""

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

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        gateway = self.gateway
        rows = target_frame(gateway.spark, at, list(self.attributes), [_ADDRESS])
        bound = [
            known_as(gateway, f.col(quoted_name(name)), attribute, name)
            for name, attribute in self.attributes.items()
        ]
        chosen = rows.select(*bound, f.col(_ADDRESS)).where(column(gateway, self.expression))
        return rows_of(chosen, at)

    def ensure_match(self, base: Snapshot, fragments: tuple[Fragment, ...]) -> None:
        """Accept all rows."""
