"""Which column of a table does a column of the data mean?"""

from __future__ import annotations

from collections.abc import Sequence

from lancelake.errors import SchemaMismatchError

CASE_SENSITIVE = "spark.sql.caseSensitive"


def matched_names(
    data: Sequence[str], table: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """Return the data's columns by the names that the table has for them.

    A column that the table does not have keeps its name. A table with names that differ only in
    case is matched by exact names.
    """
    by_lower = {name.lower(): name for name in table}
    if case_sensitive or len(by_lower) < len(table):
        return tuple(data)
    names = tuple(by_lower.get(name.lower(), name) for name in data)
    ensure_distinct(data)
    return names


def ensure_distinct(data: Sequence[str], table: Sequence[str] = ()) -> None:
    """Refuse columns whose names differ only in case, in the data or from one of the table."""
    seen = {name.lower(): name for name in table}
    known = set(table)
    for name in data:
        other = seen.setdefault(name.lower(), name)
        if name in known or other == name:
            continue
        raise SchemaMismatchError(
            f"columns {other} and {name} differ only in case, which Spark does not tell apart",
            path=name,
            action=f"Rename one of them; {CASE_SENSITIVE}=true tells them apart when reading.",
        )
