"""Conflict matrix of all operations, computed from the rules on examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format.ids import Version
from lancelake.format.manifest import WriterVersion
from lancelake.format.operations import Operation
from lancelake.format.transaction import Transaction
from lancelake.txn import build, examples, registry
from lancelake.txn.examples import Example
from lancelake.txn.options import BuildOptions
from lancelake.txn.rules import AffectedRows, Compatible, Context, Incompatible, Retryable, Verdict
from lancelake.txn.state import TableState


class PairOutcome(Enum):
    """Outcome for mine; the value is its mark in the printed matrix."""

    OK = "·"
    RETRY = "R"
    REFUSED = "X"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCase:
    """One pair of examples and its verdict."""

    mine: str
    theirs: str
    outcome: PairOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All pairs of two kinds of operation."""

    mine: type[Operation]
    theirs: type[Operation]
    cases: tuple[MatrixCase, ...]

    @property
    def outcomes(self) -> frozenset[PairOutcome]:
        """Return all outcomes of the pairs."""
        return frozenset(c.outcome for c in self.cases)

    @property
    def mark(self) -> str:
        """Return the marks of all outcomes, the mildest first."""
        return "".join(o.value for o in PairOutcome if o in self.outcomes)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return the distinct reasons why mine is not committed unchanged."""
        found = (f"{c.outcome.value}: {c.reason}" for c in self.cases if c.reason)
        return tuple(dict.fromkeys(found))


@cache
def matrix() -> tuple[tuple[Cell, ...], ...]:
    """Check every pair; rows are mine, columns are theirs."""
    found = examples.shapes()
    committed = {k: tuple((s, _after(s)) for s in each) for k, each in found.items()}
    return tuple(
        tuple(
            Cell(mine=mine, theirs=theirs, cases=_cases(found[mine], committed[theirs]))
            for theirs in found
        )
        for mine in found
    )


def markdown() -> str:
    """Print the matrix, and below it the conditions of each cell that has any."""
    rows = matrix()
    names = [cell.theirs.__name__ for cell in rows[0]]
    lines = [_line(["mine \\ theirs", *names]), _line(["---"] * (len(names) + 1))]
    lines += [_line([row[0].mine.__name__, *(cell.mark for cell in row)]) for row in rows]
    lines += ["", "Conditions, where the outcome depends on more than the two kinds:", ""]
    for cell in (c for row in rows for c in row if len(c.outcomes) > 1):
        reasons = "; ".join(cell.conditions)
        lines.append(f"- {cell.mine.__name__} after {cell.theirs.__name__}: {reasons}")
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cases(
    mine: tuple[Example, ...], theirs: tuple[tuple[Example, TableState], ...]
) -> tuple[MatrixCase, ...]:
    return tuple(_case(one, other, after) for one in mine for other, after in theirs)


def _case(mine: Example, theirs: Example, after: TableState) -> MatrixCase:
    rows: AffectedRows | None = None if mine.rows is None else AffectedRows(dict(mine.rows))
    context = Context(base=examples.table(), theirs_after=after, affected_rows=rows)
    verdict = registry.conflicts(mine.operation, theirs.operation, context)
    outcome, reason = _outcome(verdict)
    return MatrixCase(mine=mine.name, theirs=theirs.name, outcome=outcome, reason=reason)


def _outcome(verdict: Verdict) -> tuple[PairOutcome, str]:
    match verdict:
        case Compatible():
            return PairOutcome.OK, ""
        case Retryable(reason):
            return PairOutcome.RETRY, reason
        case Incompatible(reason):
            return PairOutcome.REFUSED, reason
        case _:
            assert_never(verdict)


def _after(shape: Example) -> TableState:
    """Return the table after an example; a clone creates another table and leaves this one."""
    base = examples.table()
    writer = WriterVersion(library="lancelake", version="0.0.0")
    transaction = Transaction(
        read_version=Version(base.manifest.version), uuid="0", operation=shape.operation
    )
    options = BuildOptions(timestamp_ns=0, writer=writer)
    try:
        return build.next_state(transaction, base, options, restored=base)
    except InvalidRequestError:
        return base
