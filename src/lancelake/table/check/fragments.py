"""Check the ids, order and row counts of fragments."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from lancelake.errors import LanceTableError
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject


def check_fragments(subject: Subject) -> Iterator[Finding]:
    """Check the ids, order and row counts of the fragments."""
    for position, fragment in enumerate(subject.decoded):
        if isinstance(fragment, LanceTableError):
            yield subject.error(
                "fragment-damaged",
                f"entry {position} of the fragment list cannot be decoded: {fragment.problem}",
            )
    yield from _ids(subject)
    yield from _row_counts(subject)


def _ids(subject: Subject) -> Iterator[Finding]:
    ids = [fragment.id for fragment in subject.fragments]
    for fragment_id, count in Counter(ids).items():
        if count > 1:
            yield subject.finding(
                subject.strict,
                "fragment-id-twice",
                f"{count} fragments have the id {fragment_id}; row addresses are ambiguous",
                hint="Restore the last consistent version, and write the rows again.",
            )
    highest = subject.snapshot.manifest.max_fragment_id
    too_high = [i for i in ids if highest is None or i > highest]
    if too_high:
        yield subject.error(
            "fragment-id-range",
            f"fragment {max(too_high)} is above the highest assigned fragment id, {highest}; "
            "the next write may assign its id again",
        )
    if any(after < before for before, after in itertools.pairwise(ids)):
        yield subject.info(
            "fragment-order", "fragments are not sorted by id; rows are read in list order"
        )


def _row_counts(subject: Subject) -> Iterator[Finding]:
    unknown = [f.id for f in subject.fragments if f.physical_rows is None and f.files]
    if unknown:
        severity = Severity.INFO if subject.is_historic else Severity.WARNING
        yield subject.finding(
            severity,
            "row-count-missing",
            f"the number of rows is not recorded for {_listed(unknown)}; counting rows "
            "has to open files",
            hint="Any commit by an official release records it.",
        )


def _listed(ids: Sequence[int]) -> str:
    if len(ids) == 1:
        return f"fragment {ids[0]}"
    return f"{len(ids)} fragments, the first of them {ids[0]}"
