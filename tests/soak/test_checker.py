"""The checker of a soak detects each kind of violation, and reports no others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from soak.checker import judge
from soak.checks.finding import Wrong
from soak.history import (
    FIRST,
    Audit,
    Change,
    Commit,
    Feed,
    Final,
    History,
    Operation,
    Outcome,
    Read,
    Row,
    Seen,
    digest,
    load,
)

RowList = list[tuple[int, int, str]]
START: RowList = [(0, 100, FIRST), (1, 100, FIRST), (10, 5, FIRST), (11, 5, FIRST)]
ACCOUNTS = range(2)


def op(
    number: str,
    kind: str,
    outcome: Outcome = "ok",
    /,
    *,
    read: int = 1,
    version: int | None = 2,
    result: dict[str, Any] | None = None,
    **args: Any,
) -> Operation:
    """Return an operation."""
    return Operation(
        id=number,
        process="0.0",
        library="ours",
        kind=kind,
        args=args,
        read_version=read,
        invoked=10,
        outcome=outcome,
        done=20 if outcome == "ok" else None,
        version=version if outcome == "ok" else None,
        result=result or {},
        error="" if outcome == "ok" else "refused",
    )


def history(*versions: RowList, operations: Iterable[Operation] = (), **rest: Any) -> History:
    """Return a history in which each version was read once."""
    reads = [
        Read(process="observer", library="ours", version=number, rows=tuple(rows))
        for number, rows in enumerate(versions, 1)
    ]
    return History(operations=tuple(operations), reads=tuple(reads), accounts=ACCOUNTS, **rest)


def wrongs(found: History) -> set[Wrong]:
    """Return what the judge finds."""
    return {finding.wrong for finding in judge(found).findings}


def without(rows: RowList, *keys: int) -> RowList:
    """Return rows but for some."""
    return [row for row in rows if row[0] not in keys]


APPENDED: RowList = [*START, (20, 7, "a")]
APPEND = op("a", "append", ids=[20], value=7)
DELETE = op("d", "delete", ids=[10], result={"rows": 1})
UPDATE = op("u", "update", ids=[10], add=3, result={"rows": 1})
UPDATED: RowList = [*without(START, 10), (10, 8, "u")]
TRANSFER = op("t", "transfer", source=0, target=1, amount=30, result={"rows": 2})
TRANSFERRED: RowList = [(0, 70, "t"), (1, 130, "t"), *START[2:]]
UPSERT = op("m", "upsert", ids=[10, 21], value=9, result={"inserted": 1, "updated": 1})
UPSERTED: RowList = [*without(START, 10), (10, 9, "m"), (21, 9, "m")]
INSERT = op("i", "insert", ids=[10, 22], value=4, result={"rows": 1})
INSERTED: RowList = [*START, (22, 4, "i")]

EFFECTS = [
    (APPEND, APPENDED),
    (DELETE, without(START, 10)),
    (UPDATE, UPDATED),
    (TRANSFER, TRANSFERRED),
    (UPSERT, UPSERTED),
    (INSERT, INSERTED),
    (op("c", "compact"), START),
    (op("x", "add_column", name="c"), START),
]


@pytest.mark.parametrize(("operation", "after"), EFFECTS, ids=[o.kind for o, _ in EFFECTS])
def test_an_operation_that_did_what_it_said_is_in_order(
    operation: Operation, after: RowList
) -> None:
    assert wrongs(history(START, after, operations=[operation])) == set()


@pytest.mark.parametrize(("operation", "after"), EFFECTS[:6], ids=[o.kind for o, _ in EFFECTS[:6]])
def test_an_acknowledged_operation_that_left_nothing_is_lost(
    operation: Operation, after: RowList
) -> None:
    found = wrongs(history(START, START, operations=[operation]))
    assert Wrong.LOST_UPDATE in found


@pytest.mark.parametrize(("operation", "after"), EFFECTS[:6], ids=[o.kind for o, _ in EFFECTS[:6]])
def test_an_operation_of_unknown_outcome_may_have_happened(
    operation: Operation, after: RowList
) -> None:
    unknown = replace(operation, outcome="unknown", version=None, result={})
    assert wrongs(history(START, after, operations=[unknown])) == set()
    assert wrongs(history(START, START, operations=[unknown])) == set()


@pytest.mark.parametrize(("operation", "after"), EFFECTS[:6], ids=[o.kind for o, _ in EFFECTS[:6]])
def test_an_operation_that_failed_must_not_have_happened(
    operation: Operation, after: RowList
) -> None:
    failed = replace(operation, outcome="fail", version=None, result={})
    assert wrongs(history(START, after, operations=[failed])) == {Wrong.FAILED_BUT_APPLIED}
    assert wrongs(history(START, START, operations=[failed])) == set()


def test_a_transfer_that_built_on_an_old_balance_is_a_lost_update() -> None:
    second = op("t2", "transfer", read=1, version=3, source=0, target=1, amount=5)
    stale: RowList = [(0, 95, "t2"), (1, 105, "t2"), *START[2:]]
    found = wrongs(history(START, TRANSFERRED, stale, operations=[TRANSFER, second]))
    assert found == {Wrong.LOST_UPDATE}


def test_half_a_transfer_breaks_the_total() -> None:
    half: RowList = [(0, 70, "t"), *START[1:]]
    assert Wrong.WRONG_TOTAL in wrongs(history(START, half, operations=[TRANSFER]))


def test_a_delete_need_not_know_a_row_that_came_after_it_began() -> None:
    late = op("d", "delete", read=1, version=3, ids=[10, 20], result={"rows": 1})
    commits = {3: Commit(version=3, kind="Delete", read_version=1)}
    versions = (START, APPENDED, without(APPENDED, 10))
    assert wrongs(history(*versions, operations=[APPEND, late], commits=commits)) == set()


def test_a_delete_must_take_a_row_that_was_there_when_it_began() -> None:
    late = op("d", "delete", read=2, version=3, ids=[10, 20], result={"rows": 1})
    commits = {3: Commit(version=3, kind="Delete", read_version=2)}
    versions = (START, APPENDED, without(APPENDED, 10))
    found = wrongs(history(*versions, operations=[APPEND, late], commits=commits))
    assert found == {Wrong.LOST_UPDATE}


def test_an_insert_must_not_touch_a_row_that_is_there() -> None:
    touched: RowList = [*without(INSERTED, 10), (10, 4, "i")]
    found = wrongs(history(START, touched, operations=[INSERT]))
    assert Wrong.LOST_UPDATE in found


GONE_MEANWHILE = (START, without(START, 10), without(INSERTED, 10))
"""A row is deleted, then others are inserted."""


def test_an_insert_may_leave_out_a_key_that_was_deleted_after_it_began() -> None:
    late = replace(INSERT, read_version=1, version=3)
    commits = {3: Commit(version=3, kind="Update", read_version=1)}
    found = history(*GONE_MEANWHILE, operations=[DELETE, late], commits=commits)
    assert wrongs(found) == set()


def test_an_official_insert_is_judged_by_all_versions_that_it_may_have_read() -> None:
    late = replace(INSERT, library="14.0.2", read_version=1, version=3)
    commits = {3: Commit(version=3, kind="Update", read_version=2)}
    found = history(*GONE_MEANWHILE, operations=[DELETE, late], commits=commits)
    assert wrongs(found) == set()


def test_an_insert_must_write_a_key_that_was_deleted_before_it_began() -> None:
    late = replace(INSERT, read_version=2, version=3)
    commits = {3: Commit(version=3, kind="Update", read_version=2)}
    found = history(*GONE_MEANWHILE, operations=[DELETE, late], commits=commits)
    assert wrongs(found) == {Wrong.LOST_UPDATE}


def test_an_operation_must_not_take_rows_along() -> None:
    found = wrongs(history(START, without(APPENDED, 11), operations=[APPEND]))
    assert found == {Wrong.LOST_UPDATE}


def test_a_row_that_no_operation_wrote_is_a_dirty_read() -> None:
    assert wrongs(history(START, [*START, (30, 1, "nobody")])) == {Wrong.DIRTY_READ}


def test_rows_that_no_operation_deleted_are_missed() -> None:
    assert wrongs(history(START, without(START, 10))) == {Wrong.UNEXPLAINED_CHANGE}


def test_two_operations_do_not_share_a_version() -> None:
    both: RowList = [*APPENDED, (22, 4, "i")]
    found = wrongs(history(START, both, operations=[APPEND, INSERT]))
    assert Wrong.UNEXPLAINED_CHANGE in found


def test_a_key_must_not_be_there_twice() -> None:
    twice: RowList = [*APPENDED, (20, 7, "a")]
    assert Wrong.DUPLICATE_KEY in wrongs(history(START, twice, operations=[APPEND]))


def test_a_deleted_row_must_not_come_back() -> None:
    more = op("a", "append", ids=[20, 21], value=7)
    versions = [START, [*START, (20, 7, "a"), (21, 7, "a")]]
    versions += [without(versions[1], 20), versions[1]]
    gone = op("d", "delete", read=2, version=3, ids=[20])
    found = wrongs(history(*versions, operations=[more, gone]))
    assert found == {Wrong.RESURRECTED_ROW}


def test_a_row_of_the_beginning_must_not_come_back() -> None:
    found = wrongs(history(START, without(START, 10), START, operations=[DELETE]))
    assert found == {Wrong.RESURRECTED_ROW}


def test_an_operation_must_not_be_applied_twice() -> None:
    gone = op("d", "delete", read=2, version=3, ids=[20])
    found = wrongs(history(START, APPENDED, START, APPENDED, operations=[APPEND, gone]))
    assert found == {Wrong.APPLIED_TWICE}


RESTORE = {3: Commit(version=3, kind="Restore", read_version=2, restored=1)}


def test_a_restore_brings_rows_back() -> None:
    versions = (START, without(START, 10), START)
    assert wrongs(history(*versions, operations=[DELETE], commits=RESTORE)) == set()


def test_a_restore_brings_back_what_was_there() -> None:
    versions = (START, without(START, 10), without(START, 11))
    found = wrongs(history(*versions, operations=[DELETE], commits=RESTORE))
    assert found == {Wrong.UNEXPLAINED_CHANGE}


def test_a_version_looks_the_same_to_everybody() -> None:
    good = history(START, APPENDED, operations=[APPEND])
    other = Read(process="1.0", library="4.0.2", version=2, rows=tuple(START), how="pinned")
    assert wrongs(replace(good, reads=(*good.reads, other))) == {Wrong.UNSTABLE_VERSION}


def test_an_operation_reports_the_version_it_made() -> None:
    elsewhere = replace(APPEND, version=3)
    found = wrongs(history(START, APPENDED, APPENDED, operations=[elsewhere]))
    assert found == {Wrong.WRONG_VERSION}


def test_an_operation_reports_how_many_rows_it_changed() -> None:
    much = replace(DELETE, result={"rows": 2})
    assert wrongs(history(START, without(START, 10), operations=[much])) == {Wrong.WRONG_COUNT}


def test_no_reader_is_given_an_older_version_than_was_known() -> None:
    seen = (
        Seen(process="1.0", asked=1, answered=2, version=5),
        Seen(process="2.0", asked=3, answered=4, version=4),
    )
    assert wrongs(History(seen=seen)) == {Wrong.VERSIONS_GO_BACK}
    overlapping = (seen[0], replace(seen[1], asked=1))
    assert wrongs(History(seen=overlapping)) == set()


def test_an_acknowledged_commit_is_seen_by_all_who_ask_later() -> None:
    seen = (Seen(process="1.0", asked=30, answered=31, version=1),)
    found = wrongs(history(START, APPENDED, operations=[APPEND], seen=seen))
    assert found == {Wrong.VERSIONS_GO_BACK}


def test_a_commit_comes_after_what_it_read() -> None:
    back = op("a", "append", read=2, version=2, ids=[20], value=7)
    found = wrongs(history(START, APPENDED, operations=[back]))
    assert found == {Wrong.VERSIONS_GO_BACK}


def test_values_of_further_columns_are_those_that_were_written() -> None:
    read = Read(process="0.0", library="ours", version=1, rows=tuple(START), columns={"c": (0, 1)})
    assert wrongs(History(reads=(read,), accounts=ACCOUNTS)) == {Wrong.WRONG_COLUMN}


def feed(*changes: tuple[str, int, int, int, str]) -> Feed:
    """Return a feed of the second version."""
    every = (
        Change(kind=kind, version=version, key=key, row=Row(value, by))
        for kind, version, key, value, by in changes
    )
    return Feed(process="observer", begin=1, end=2, changes=tuple(every))


GOOD_FEED = (("update_preimage", 2, 10, 5, FIRST), ("update_postimage", 2, 10, 8, "u"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (GOOD_FEED, set()),
        ((), {Wrong.WRONG_FEED}),
        (GOOD_FEED[1:], {Wrong.WRONG_FEED}),
        (GOOD_FEED[:1], {Wrong.WRONG_FEED}),
        ((("update_preimage", 2, 10, 6, FIRST), GOOD_FEED[1]), {Wrong.WRONG_FEED}),
        ((GOOD_FEED[0], ("update_postimage", 2, 10, 9, "u")), {Wrong.WRONG_FEED}),
        ((*GOOD_FEED, ("insert", 2, 30, 1, "u")), {Wrong.WRONG_FEED}),
        ((*GOOD_FEED, ("delete", 2, 11, 6, FIRST)), {Wrong.WRONG_FEED}),
        ((*GOOD_FEED, ("insert", 5, 30, 1, "u")), {Wrong.WRONG_FEED}),
        ((*GOOD_FEED, ("vanish", 2, 30, 1, "u")), {Wrong.WRONG_FEED}),
        (GOOD_FEED[::-1], {Wrong.WRONG_FEED}),
        ((*GOOD_FEED, *GOOD_FEED), {Wrong.WRONG_FEED}),
        ((("delete", *GOOD_FEED[0][1:]), ("insert", *GOOD_FEED[1][1:])), {Wrong.WRONG_FEED}),
        ((("insert", *GOOD_FEED[1][1:]),), {Wrong.WRONG_FEED}),
        ((("delete", *GOOD_FEED[0][1:]),), {Wrong.WRONG_FEED}),
    ],
    ids=[
        "as it was",
        "nothing",
        "no image before",
        "no image after",
        "wrong image before",
        "wrong image after",
        "too much",
        "delete of what was not there",
        "another version",
        "unknown kind",
        "images in the wrong order",
        "twice",
        "another row with the same key",
        "insert of what was there",
        "delete of what is there",
    ],
)
def test_the_change_feed_reports_what_differs(
    changes: tuple[tuple[str, int, int, int, str], ...], expected: set[Wrong]
) -> None:
    found = history(START, UPDATED, operations=[UPDATE], feeds=(feed(*changes),))
    assert wrongs(found) == expected


UPDATE_BOTH = op("u", "update", ids=[10, 11], add=3, result={"rows": 2})
UPDATED_BOTH: RowList = [*START[:2], (10, 8, "u"), (11, 8, "u")]


def test_a_feed_with_an_image_of_another_key_is_found() -> None:
    replaced: RowList = [*without(START, 10), (21, 9, "m")]
    crossed = (("update_preimage", 2, 10, 5, FIRST), ("update_postimage", 2, 21, 9, "m"))
    found = history(START, replaced, feeds=(feed(*crossed),))
    assert Wrong.WRONG_FEED in wrongs(found)
    apart = (("delete", *crossed[0][1:]), ("insert", *crossed[1][1:]))
    assert Wrong.WRONG_FEED not in wrongs(history(START, replaced, feeds=(feed(*apart),)))


def test_images_of_several_keys_may_come_in_any_order_of_keys() -> None:
    before = [("update_preimage", 2, key, 5, FIRST) for key in (11, 10)]
    after = [("update_postimage", 2, key, 8, "u") for key in (10, 11)]
    told = (feed(*before, *after),)
    assert wrongs(history(START, UPDATED_BOTH, operations=[UPDATE_BOTH], feeds=told)) == set()


def test_a_restore_may_replace_a_row_by_another_with_its_key() -> None:
    again: RowList = [*without(START, 10), (10, 9, "m")]
    upsert = op("m", "upsert", read=2, version=3, ids=[10], value=9)
    versions = (START, without(START, 10), again, START)
    told = (
        Change(kind="delete", version=4, key=10, row=Row(9, "m")),
        Change(kind="insert", version=4, key=10, row=Row(5, FIRST)),
    )
    feeds = (Feed(process="observer", begin=3, end=4, changes=told),)
    commits = {4: Commit(version=4, kind="Restore", read_version=3, restored=1)}
    found = history(*versions, operations=[DELETE, upsert], feeds=feeds, commits=commits)
    assert wrongs(found) == set()


BRANCH = op(
    "b",
    "branch",
    version=None,
    name="side",
    result={"rows": [list(row) for row in [*START, (40, 0, "b")]]},
    ids=[40],
)
BRANCH = replace(BRANCH, args={**BRANCH.args, "version": 1})


def test_a_branch_has_the_rows_of_its_version_and_its_own() -> None:
    good = Audit(library="4.0.2", version=0, branch="side", digest=digest(BRANCH.result["rows"]))
    assert wrongs(history(START, operations=[BRANCH], final=Final(audits=(good,)))) == set()
    grown = replace(good, digest=digest(START))
    found = wrongs(history(START, operations=[BRANCH], final=Final(audits=(grown,))))
    assert found == {Wrong.WRONG_BRANCH}
    other = replace(BRANCH, result={"rows": [list(row) for row in START]})
    assert wrongs(history(START, operations=[other])) == {Wrong.WRONG_BRANCH}


@pytest.mark.parametrize(
    ("outcome", "tags", "expected"),
    [
        ("ok", {"first": 1}, set()),
        ("unknown", {"first": 1}, set()),
        ("unknown", {}, set()),
        ("fail", {}, set()),
        ("ok", {}, {Wrong.WRONG_TAGS}),
        ("ok", {"first": 2}, {Wrong.WRONG_TAGS}),
        ("unknown", {"first": 2}, {Wrong.WRONG_TAGS}),
        ("fail", {"first": 1}, {Wrong.FAILED_BUT_APPLIED}),
        ("ok", {"first": 1, "second": 1}, {Wrong.WRONG_TAGS}),
    ],
)
def test_tags_stay_where_they_were_put(
    outcome: Outcome, tags: dict[str, int], expected: set[Wrong]
) -> None:
    tag = op("g", "tag", outcome, version=None, name="first")
    tag = replace(tag, args={"name": "first", "version": 1})
    assert wrongs(history(START, operations=[tag], final=Final(tags=tags))) == expected


def test_a_listed_version_can_be_read_by_everybody() -> None:
    gone = Audit(library="14.0.2", version=1, error="not found")
    assert wrongs(history(START, final=Final(audits=(gone,)))) == {Wrong.MISSING_FILE}


def test_a_listed_version_is_what_it_was() -> None:
    same = Audit(library="14.0.2", version=1, digest=digest(reversed(START)))
    assert wrongs(history(START, final=Final(audits=(same,)))) == set()
    other = replace(same, digest=digest(APPENDED))
    assert wrongs(history(START, final=Final(audits=(other,)))) == {Wrong.READERS_DISAGREE}


def test_readers_agree_on_versions_that_were_not_read_before() -> None:
    audits = tuple(
        Audit(library=name, version=9, digest=digest(rows))
        for name, rows in (("ours", START), ("4.0.2", APPENDED))
    )
    assert wrongs(History(final=Final(audits=audits))) == {Wrong.READERS_DISAGREE}


@pytest.mark.parametrize("kind", ["scan", "travel"])
def test_a_read_of_a_version_that_must_be_there_does_not_fail(kind: str) -> None:
    assert wrongs(History(operations=(op("s", kind, "fail"),))) == {Wrong.FAILED_READ}


def test_a_read_may_fail_when_the_store_does() -> None:
    failed = replace(op("s", "scan", "fail"), error="StorageUnavailableError: no reply")
    assert wrongs(History(operations=(failed,))) == set()


def test_a_read_that_takes_long_may_find_its_version_gone() -> None:
    failed = replace(op("s", "scan", "fail"), done=10 + 60 * 10**9)
    assert wrongs(History(operations=(failed,), retention_s=20.0)) == set()


@pytest.mark.parametrize(
    ("library", "error", "expected"),
    [
        ("spark", "Py4JJavaError: KeyError in a proxy", {Wrong.CRUDE_ERROR}),
        ("ours", "KeyError: 'c'", {Wrong.CRUDE_ERROR}),
        ("ours", "SchemaMismatchError: the data has columns that the table has not", set()),
        ("14.0.2", "RuntimeError: not ours", set()),
    ],
)
def test_a_refusal_of_our_own_says_what_is_wrong(
    library: str, error: str, expected: set[Wrong]
) -> None:
    refused = replace(op("a", "append", "fail"), library=library, error=error)
    assert wrongs(History(operations=(refused,))) == expected


def test_what_the_table_checker_finds_is_found() -> None:
    final = Final(findings=("fragment 3 has no file",))
    assert wrongs(History(final=final)) == {Wrong.UNSOUND_TABLE}


def test_a_process_that_ends_by_itself_is_found() -> None:
    assert wrongs(History(final=Final(crashes=("0.0 ended with 1",)))) == {Wrong.CRASH}


def test_an_operation_that_never_ended_is_of_unknown_outcome(tmp_path: Path) -> None:
    log = tmp_path / "0.0.jsonl"
    call = {
        "t": "invoke",
        "op": "0.0.1",
        "kind": "append",
        "args": {},
        "read_version": 1,
        "at": 5,
        "process": "0.0",
        "library": "ours",
    }
    log.write_text(json.dumps(call) + '\n{"t":"ok","op":"0.0.1","at"')
    found = load([log], final=Final(), accounts=ACCOUNTS)
    assert [operation.outcome for operation in found.operations] == ["unknown"]
