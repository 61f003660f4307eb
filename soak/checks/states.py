"""Reconstruct the rows of each version from all reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from soak.checks.finding import Finding, Wrong
from soak.history import History, Read, Row, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one version has other than the one before."""

    added: Rows
    removed: Rows
    changed: dict[int, tuple[Row, Row]]

    @property
    def is_empty(self) -> bool:
        """True when both hold the same rows."""
        return not (self.added or self.removed or self.changed)

    def writers(self) -> set[str]:
        """Return the operations that wrote the new rows."""
        return {row.by for row in self.added.values()} | {
            new.by for _, new in self.changed.values()
        }


def difference(before: Rows, after: Rows) -> Difference:
    """Compare two versions."""
    return Difference(
        added={k: row for k, row in after.items() if k not in before},
        removed={k: row for k, row in before.items() if k not in after},
        changed={
            k: (before[k], row) for k, row in after.items() if k in before and before[k] != row
        },
    )


def unstable_versions(history: History) -> Iterator[Finding]:
    """Yield versions that did not look the same to everybody, every time."""
    first: dict[int, tuple[Read, list[tuple[int, int, str]]]] = {}
    for read in history.reads:
        rows = sorted(read.rows)
        known, expected = first.setdefault(read.version, (read, rows))
        if rows != expected:
            lost, more = set(expected) - set(rows), set(rows) - set(expected)
            yield Finding(
                wrong=Wrong.UNSTABLE_VERSION,
                version=read.version,
                message=f"{read.library} ({read.how}) has {_few(more)} and lacks {_few(lost)}, "
                f"other than {known.library} ({known.how})",
            )


def duplicate_keys(history: History) -> Iterator[Finding]:
    """Yield versions that hold a key more than once."""
    done: set[int] = set()
    for read in history.reads:
        counts = Counter(key for key, _, _ in read.rows)
        twice = {key for key, count in counts.items() if count > 1}
        if twice and read.version not in done:
            done.add(read.version)
            by = sorted({by for key, _, by in read.rows if key in twice})
            yield Finding(
                wrong=Wrong.DUPLICATE_KEY,
                version=read.version,
                message=f"{_few(twice)}",
                operations=tuple(by[:6]),
            )


def wrong_totals(history: History) -> Iterator[Finding]:
    """Yield versions in which the accounts do not add up."""
    total: int | None = None
    for version, rows in sorted(history.states.items()):
        found = sum(rows[key].value for key in history.accounts if key in rows)
        total = found if total is None else total
        if found != total:
            message = f"the accounts hold {found}, not {total}"
            yield Finding(wrong=Wrong.WRONG_TOTAL, version=version, message=message)


def wrong_columns(history: History) -> Iterator[Finding]:
    """Yield reads in which a further column has a value that no operation wrote."""
    for read in history.reads:
        for name, (_, wrong) in read.columns.items():
            if wrong:
                message = f"{wrong} values of {name} are wrong, says {read.library} ({read.how})"
                yield Finding(wrong=Wrong.WRONG_COLUMN, version=read.version, message=message)


def _few(found: set[int] | set[tuple[int, int, str]]) -> str:
    shown = ", ".join(str(each) for each in sorted(found)[:4])
    return f"{len(found)} rows [{shown}{', ...' if len(found) > 4 else ''}]"
