"""Check the final state of a table against the history."""

from __future__ import annotations

from collections.abc import Iterator

from soak.checks.finding import Finding, Wrong
from soak.history import History, Operation, Row, digest
from soak.plan import OURS, SPARK

_CRUDE = frozenset(
    (
        "AssertionError",
        "AttributeError",
        "IndexError",
        "InternalError",
        "KeyError",
        "NameError",
        "Py4JJavaError",
        "RuntimeError",
        "TypeError",
        "UnboundLocalError",
    )
)


def audits(history: History) -> Iterator[Finding]:
    """Yield versions that cannot be read, or that are not what they were."""
    expected = {
        version: digest([key, row.value, row.by] for key, row in rows.items())
        for version, rows in history.states.items()
    }
    for audit in history.final.audits:
        place = f" of branch {audit.branch}" if audit.branch else ""
        if audit.error:
            message = f"{audit.library} cannot read it{place}: {audit.error}"
            yield Finding(wrong=Wrong.MISSING_FILE, version=audit.version, message=message)
            continue
        if audit.branch is not None:
            continue
        if expected.setdefault(audit.version, audit.digest) != audit.digest:
            message = f"{audit.library} sees other rows than those seen before"
            yield Finding(wrong=Wrong.READERS_DISAGREE, version=audit.version, message=message)


def branches(history: History) -> Iterator[Finding]:
    """Yield branches that hold other rows than those of their version and their own."""
    states = history.states
    for operation in history.operations:
        if operation.kind != "branch" or operation.outcome != "ok":
            continue
        base = states.get(operation.args["version"])
        if base is None:
            continue
        own = dict.fromkeys(operation.args["ids"], Row(0, operation.id))
        rows = sorted([key, row.value, row.by] for key, row in (base | own).items())
        if rows != sorted(operation.result["rows"]):
            yield _branch(operation, "its writer saw other rows")
        for audit in history.final.audits:
            is_it = audit.branch == operation.args["name"] and not audit.error
            if is_it and audit.digest != digest(rows):
                yield _branch(operation, f"{audit.library} sees other rows at the end")


def tags(history: History) -> Iterator[Finding]:
    """Yield tags that are missing, moved, or created by no operation."""
    found = dict(history.final.tags)
    for operation in history.operations:
        if operation.kind != "tag":
            continue
        name, version = operation.args["name"], operation.args["version"]
        there = found.pop(name, None)
        if operation.outcome == "ok" and there != version:
            yield _tag(operation, f"{name} is at {there}, not at {version}")
        elif operation.outcome == "fail" and there is not None:
            yield Finding(
                wrong=Wrong.FAILED_BUT_APPLIED,
                message=f"tag {name}: {operation.error}",
                operations=(operation.id,),
            )
        elif there not in (None, version):
            yield _tag(operation, f"{name} is at {there}, not at {version}")
    for name in found:
        yield Finding(wrong=Wrong.WRONG_TAGS, message=f"no operation created {name}")


def failed_reads(history: History) -> Iterator[Finding]:
    """Yield reads of the newest version, or of a tagged one, that failed for no good reason."""
    for operation in history.operations:
        is_due = operation.kind == "travel" or (
            # What was the newest version long ago may be gone before it is read.
            operation.kind in ("scan", "filtered")
            and (operation.done or 0) - operation.invoked < history.retention_s * 1e9 / 2
        )
        has_failed = operation.outcome == "fail" and "StorageUnavailable" not in operation.error
        if is_due and has_failed:
            yield Finding(
                wrong=Wrong.FAILED_READ,
                version=operation.read_version,
                message=f"{operation.library}: {operation.error}",
                operations=(operation.id,),
            )


def crude_errors(history: History) -> Iterator[Finding]:
    """Yield refusals of our own that do not say what is wrong, but where a program stumbled."""
    for operation in history.operations:
        is_ours = operation.library in (OURS, SPARK)
        if is_ours and operation.error.partition(":")[0] in _CRUDE:
            yield Finding(
                wrong=Wrong.CRUDE_ERROR,
                version=operation.read_version,
                message=f"{operation.kind} by {operation.library}: {operation.error[:500]}",
                operations=(operation.id,),
            )


def soundness(history: History) -> Iterator[Finding]:
    """Yield what the checker of tables found, and processes that did not behave."""
    for text in history.final.findings:
        yield Finding(wrong=Wrong.UNSOUND_TABLE, message=text)
    for text in history.final.crashes:
        yield Finding(wrong=Wrong.CRASH, message=text)


def _branch(operation: Operation, message: str) -> Finding:
    return Finding(
        wrong=Wrong.WRONG_BRANCH,
        version=operation.args["version"],
        message=message,
        operations=(operation.id,),
    )


def _tag(operation: Operation, message: str) -> Finding:
    return Finding(wrong=Wrong.WRONG_TAGS, message=message, operations=(operation.id,))
