"""Answers about tables: lists, versions, schemas, fragments and MemWAL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from lancelake.errors import VersionNotFoundError
from lancelake.format.index_meta import MEM_WAL
from lancelake.memwal.status import wal_status
from lancelake.table.describe.commit import commit_document, diff_document
from lancelake.table.describe.documents import Json, document, schema_document
from lancelake.table.describe.found_tables import table_facts
from lancelake.table.describe.fragment_map import fragment_map, one_fragment
from lancelake.table.describe.schema_history import schema_history
from lancelake.table.describe.searchable import searchable_columns
from lancelake.table.describe.summary import describe, exact_rows, summary_document, table_command
from lancelake.table.describe.version_graph import MAIN, VersionGraph
from lancelake.ui.calls import Call

_THREADS = 4
_MOST_TABLES = 100
_MOST_VERSIONS = 100
_MOST_EXAMINED = 1_000
_MOST_FRAGMENTS = 20_000
_EVERYTHING = 1 << 62


def tables(call: Call) -> Json:
    """Return a page of the tables with their sizes."""
    found = call.tables.listed()
    offset = call.number("offset", 0, _EVERYTHING)
    limit = call.number("limit", 50, _MOST_TABLES)
    keys = list(found.tables)[offset : offset + limit]
    with ThreadPoolExecutor(_THREADS) as pool:
        facts = list(pool.map(lambda key: table_facts(found.tables[key]), keys))
    return {
        "roots": list(call.tables.roots),
        "total": len(found.tables),
        "offset": offset,
        "problems": list(found.problems),
        "tables": [{"id": key, **body} for key, body in zip(keys, facts, strict=True)],
    }


def table(call: Call) -> Json:
    """Return the summary of a version, with advice and what can be searched."""
    snapshot = call.snapshot
    summary = describe(snapshot)
    body = summary_document(snapshot, summary, exact_rows(snapshot, summary))
    advice = [
        {**document(each), "command": each.command and table_command(each.command, snapshot)}
        for each in summary.warnings
    ]
    return {
        **body,
        "warnings": advice,
        "check_command": table_command("check", snapshot),
        "search": searchable_columns(snapshot),
        "has_mem_wal": any(index.name == MEM_WAL for index in snapshot.indices),
    }


def versions(call: Call) -> Json:
    """Return a page of the version graph."""
    graph = VersionGraph.load(call.location)
    limit = max(1, call.number("limit", 25, _MOST_VERSIONS))
    offset = call.number("offset", 0, _EVERYTHING)
    wanted = call.optional("find")
    if wanted is not None:
        row = graph.row_of(call.text("branch") or MAIN, wanted)
        if row is None:
            raise VersionNotFoundError(f"version {wanted} was not found")
        offset = row - row % limit
    return graph.page(offset, limit)


def commit(call: Call) -> Json:
    """Return a version and its differences from the one before, or from another."""
    snapshot = call.snapshot
    body = commit_document(snapshot)
    number = call.optional("before")
    number = body["previous"] if number is None else number
    if number is None:
        return {**body, "diff": None}
    before = call.tables.snapshot(call.table, call.text("branch"), number)
    return {**body, "diff": diff_document(before, snapshot)}


def schema(call: Call) -> Json:
    """Return the columns of a version."""
    return schema_document(call.snapshot)


def schema_changes(call: Call) -> Json:
    """Return the versions that changed the columns, some versions at a time."""
    return schema_history(call.snapshot, call.optional("before"), _MOST_EXAMINED)


def fragments(call: Call) -> Json:
    """Return the fragments of a version as columns of numbers."""
    offset = call.number("offset", 0, _EVERYTHING)
    return fragment_map(call.snapshot, offset, call.number("limit", 10_000, _MOST_FRAGMENTS))


def fragment(call: Call) -> Json:
    """Return a fragment with its files."""
    return one_fragment(call.snapshot, call.required("number"))


def mem_wal(call: Call) -> Json:
    """Return the regions of the MemWAL, and what of them is not merged."""
    snapshot = call.snapshot
    found = wal_status(snapshot)
    is_waiting = any(each.unmerged or each.tail_rows for each in found.regions)
    return {
        "version": found.version,
        "regions": [each.facts() for each in found.regions],
        "command": table_command("wal merge --flush", snapshot) if is_waiting else None,
    }
