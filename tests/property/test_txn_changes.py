"""Laws of changes: what every version has, and when the order of two changes does not matter."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.fragment import Fragment
from lancelake.format.ids import Version
from lancelake.format.operations import Transaction
from lancelake.format.rowids import VersionSequence
from lancelake.txn import build, conflict_matrix
from lancelake.txn.fragments import row_id_values
from lancelake.txn.options import TableState
from lancelake.txn.rules import AffectedRows, Compatible, Context, Retryable
from tests.strategies.table_changes import Change, Deletions, changes, live_rows
from tests.unit.txn.making import OPTIONS, table

STRANGE = b"\xa2\x06\x01x"


def committed(change: Change, head: TableState) -> TableState:
    transaction = Transaction(
        read_version=head.manifest.version, uuid="0", operation=change.operation
    )
    return build.next_state(transaction, head, OPTIONS)


def after_both(
    first: Change, second: Change, base: TableState, deletions: Deletions
) -> TableState | None:
    """Commit two changes of one version; None when the second must be done again."""
    middle = committed(first, base)
    rows = None if second.rows is None else AffectedRows(dict(second.rows))
    context = Context(base=base, theirs_after=middle, affected_rows=rows)
    verdict = build.conflicts(second.operation, first.operation, context)
    if not isinstance(verdict, Compatible):
        return None
    transaction = Transaction(
        read_version=base.manifest.version, uuid="0", operation=second.operation
    )
    if verdict.needs_rebase:
        outcome = build.rebase(transaction, middle, base=base, affected_rows=rows, port=deletions)
        if isinstance(outcome, Retryable):
            return None
        transaction = outcome
    return build.next_state(transaction, middle, OPTIONS)


def strange(stable: bool) -> TableState:
    head = replace(table(stable=stable), indices=(conflict_matrix.mem_wal(),))
    fragments = tuple(replace(f, unknown=STRANGE) for f in head.manifest.fragments)
    return replace(head, manifest=replace(head.manifest, fragments=fragments, unknown=STRANGE))


@given(st.data(), st.booleans())
def test_every_version_keeps_what_versions_have(data: st.DataObject, stable: bool) -> None:
    deletions = Deletions()
    state = strange(stable)
    for number in range(data.draw(st.integers(1, 5))):
        before = state
        change = data.draw(changes(before, deletions, f"c{number}"))
        state = committed(change, before)
        assert state.manifest.version == before.manifest.version + 1
        assert state.manifest.unknown == STRANGE
        ensure_fragments(state, before)
        if stable:
            ensure_row_ids(state, deletions)


@given(st.data(), st.booleans())
def test_changes_that_go_together_in_both_orders_leave_the_same_rows(
    data: st.DataObject, stable: bool
) -> None:
    deletions = Deletions()
    base = strange(stable)
    one = data.draw(changes(base, deletions, "one"))
    other = data.draw(changes(base, deletions, "two"))
    ends = [after_both(*pair, base, deletions) for pair in ((one, other), (other, one))]
    if ends[0] is not None and ends[1] is not None:
        rows = [live_rows(end, deletions) for end in ends if end is not None]
        assert rows[0] == rows[1]


@given(st.data(), st.booleans())
def test_no_change_that_goes_through_loses_a_row_of_another(
    data: st.DataObject, stable: bool
) -> None:
    deletions = Deletions()
    base = strange(stable)
    one = data.draw(changes(base, deletions, "one"))
    other = data.draw(changes(base, deletions, "two"))
    end = after_both(one, other, base, deletions)
    if end is None:
        return
    before, middle = live_rows(base, deletions), live_rows(committed(one, base), deletions)
    alone = live_rows(committed(other, base), deletions)
    keys = [
        {row[:2] for row in rows} for rows in (before, middle, alone, live_rows(end, deletions))
    ]
    came, went = keys[2] - keys[0], keys[0] - keys[2]
    assert keys[3] == (keys[1] | came) - went


def ensure_fragments(state: TableState, before: TableState) -> None:
    ids = [f.id for f in state.manifest.fragments]
    highest = state.manifest.max_fragment_id
    assert ids == sorted(set(ids))
    assert highest is not None
    assert highest >= max(ids, default=0)
    assert highest >= (before.manifest.max_fragment_id or 0)
    known = {f.id: f for f in before.manifest.fragments}
    for fragment in state.manifest.fragments:
        if fragment.id in known:
            assert fragment.unknown == known[fragment.id].unknown
        else:
            assert fragment.id > (before.manifest.max_fragment_id or 0)


def ensure_row_ids(state: TableState, deletions: Deletions) -> None:
    live: list[int] = []
    for fragment in state.manifest.fragments:
        rows = fragment.physical_rows or 0
        values = [int(i) for i in row_id_values(fragment)]
        assert len(values) == rows
        assert all(i < state.manifest.next_row_id for i in values)
        ensure_versions(fragment, rows, state.manifest.version)
        gone = deletions.load_deletions(fragment)
        live += [i for n, i in enumerate(values) if n not in gone]
    assert len(set(live)) == len(live)


def ensure_versions(fragment: Fragment, rows: int, version: Version) -> None:
    sequences = (fragment.created_at_versions, fragment.last_updated_at_versions)
    made, changed = (_versions(s, rows) for s in sequences)
    assert len(made) == len(changed) == rows
    assert all(1 <= m <= c <= version for m, c in zip(made, changed, strict=True))


def _versions(encoded: object, rows: int) -> list[int]:
    assert isinstance(encoded, bytes)
    return [int(v) for v in VersionSequence.decode(encoded, physical_rows=rows).values()]
