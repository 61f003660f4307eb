"""Describe a merge as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.table.merge.clauses import (
    DeleteRow,
    Fail,
    InsertAll,
    InsertValues,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.key_index import key_indices


@names_table
def explain(base: Snapshot, spec: MergeSpec, *, source: Sequence[str] | None = None) -> str:
    """Describe the steps of a merge, the last one first."""
    head = (
        f"MergeInsert: on=[{', '.join(spec.on)}], "
        f"when_matched={_named(spec.matched, 'DoNothing')}, "
        f"when_not_matched={_named(spec.not_matched, 'DoNothing')}, "
        f"when_not_matched_by_source={_named(spec.not_matched_by_source, 'Keep')}"
    )
    columns = "all columns" if source is None else ", ".join(source)
    steps = [
        head,
        "Write: changed rows with their row ids, then new rows",
        "    Fetch: columns of matching rows that the clauses need",
        f"      HashJoin: source.[{', '.join(spec.on)}] = target.[{', '.join(spec.on)}]",
        f"        LanceRead: uri={base.location.uri}, version={base.version}, "
        f"num_fragments={len(base.manifest.fragments)}, columns=[{', '.join(spec.on)}, _rowaddr]"
        + _indices(base, spec),
        f"        Source: {columns}",
    ]
    return "\n".join(steps) + "\n"


def _indices(base: Snapshot, spec: MergeSpec) -> str:
    found = key_indices(base, spec.on) if spec.use_index and base.indices else []
    return f", key_indices=[{', '.join(found)}]" if found else ""


def _named(clauses: Sequence[Matched | NotMatched | NotMatchedBySource], none: str) -> str:
    return " else ".join(_clause(clause) for clause in clauses) or none


def _clause(clause: Matched | NotMatched | NotMatchedBySource) -> str:
    match clause:
        case UpdateAll():
            name = "UpdateAll"
        case UpdateSet(values=values):
            name = f"Update({', '.join(f'{c} = {text}' for c, text in values.items())})"
        case DeleteRow():
            name = "Delete"
        case Fail():
            name = "Fail"
        case InsertAll():
            name = "InsertAll"
        case InsertValues(values=values):
            name = f"Insert({', '.join(f'{c} = {text}' for c, text in values.items())})"
        case _:
            assert_never(clause)
    return name if clause.condition is None else f"{name} if {clause.condition}"
