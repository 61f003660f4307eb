"""Check that versions only increase, for each process and across processes."""

from __future__ import annotations

from collections.abc import Iterator

from soak.checks.finding import Finding, Wrong
from soak.history import History

_MAY_KEEP_VERSION = ("scan", "filtered", "pinned", "travel", "compact", "cleanup")
"""Operations that make no version, or none if there is nothing to do."""


def versions_go_back(history: History) -> Iterator[Finding]:
    """Yield opens that gave an older version than was known, to anybody, when they were asked."""
    answers: list[tuple[int, int]] = [(seen.answered, seen.version) for seen in history.seen]
    answers += [
        (operation.done, operation.version)
        for operation in history.operations
        if operation.outcome == "ok"
        and operation.version is not None
        and operation.done is not None
        and operation.kind not in ("pinned", "travel")
    ]
    answers.sort()
    known, position = 0, 0
    for seen in sorted(history.seen, key=lambda each: each.asked):
        while position < len(answers) and answers[position][0] <= seen.asked:
            known = max(known, answers[position][1])
            position += 1
        if seen.version < known:
            message = f"{seen.process} was given version {seen.version} when {known} was known"
            yield Finding(wrong=Wrong.VERSIONS_GO_BACK, version=seen.version, message=message)


def commits_go_back(history: History) -> Iterator[Finding]:
    """Yield operations that landed on a version that was there before they began."""
    for operation in history.operations:
        writes = operation.kind not in _MAY_KEEP_VERSION
        if operation.outcome != "ok" or operation.version is None or not writes:
            continue
        if operation.version <= operation.read_version and operation.result.get("rows") != 0:
            message = f"{operation.kind} of {operation.read_version} made {operation.version}"
            yield Finding(
                wrong=Wrong.VERSIONS_GO_BACK,
                version=operation.version,
                message=message,
                operations=(operation.id,),
            )
