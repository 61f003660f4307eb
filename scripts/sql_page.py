"""Generate docs/reference/sql.md from the procedures and metadata tables of the Spark catalog."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import lancelake.spark.connector.table_changes  # noqa: F401  # registers the procedures
from lancelake.describe.metadata_tables import facts_schema
from lancelake.spark.sql.procedures import (
    Parameter,
    Procedure,
    procedure_named,
    procedure_names,
)
from lancelake.spark.values.spark_types import spark_field

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "sql.md"
TEXT = Path(__file__).with_name("sql_page.md")
METADATA_TABLES = ("history", "versions", "fragments", "files", "refs", "indices")


def page() -> str:
    """Return the page as it has to be."""
    text = TEXT.read_text(encoding="utf-8")
    text = text.replace("{{procedures}}", "\n".join(_procedures()))
    return text.replace("{{metadata_tables}}", "\n".join(_metadata_tables()))


def _procedures() -> Iterator[str]:
    yield "| Procedure | Arguments | Returns |"
    yield "|---|---|---|"
    for name in procedure_names():
        found = procedure_named(name)
        assert found is not None
        arguments = ", ".join(_argument(each) for each in found.parameters)
        yield f"| `{name}` {found.text} | {arguments} | {_answer(found)} |"


def _argument(parameter: Parameter) -> str:
    text = f"`{parameter.name}` {parameter.dtype.simpleString()}"
    if parameter.default in {None, "NULL"}:
        return text if parameter.default is None else f"{text} (optional)"
    return f"{text} = {parameter.default}"


def _answer(procedure: Procedure[...]) -> str:
    if procedure.answer is None:
        return "rows of the table"
    return ", ".join(f"`{field.name}`" for field in procedure.answer)


def _metadata_tables() -> Iterator[str]:
    yield "| Table | Columns |"
    yield "|---|---|"
    for name in METADATA_TABLES:
        fields = [spark_field(field) for field in facts_schema(name)]
        columns = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)
        yield f"| `{name}` | {columns} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
