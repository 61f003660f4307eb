"""Views of the explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values import descriptions as core_descriptions
from lancelake.core.values.metadata import MEM_WAL
from lancelake.core.values.reads import Nearest, SearchRequest, other_rows, words_query
from lancelake.errors import InvalidRequestError, VersionNotFoundError
from lancelake.threads import Pool
from lancelake.ui.calls import Call

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import Json

_THREADS = 4
_MOST_TABLES = 100
_MOST_VERSIONS = 100
_MOST_EXAMINED = 1_000
_MOST_FRAGMENTS = 20_000
_EVERYTHING = 1 << 62


def tables(call: Call) -> Json:
    """Return a page of the tables with their sizes."""
    listing = call.tables.search()
    offset = call.number("offset", 0, _EVERYTHING)
    limit = call.number("limit", 50, _MOST_TABLES)
    keys = list(listing.tables)[offset : offset + limit]
    with Pool(_THREADS) as pool:
        facts = list(pool.map(lambda key: TablePlace(listing.tables[key]).table_facts(), keys))
    return {
        "roots": list(call.tables.roots),
        "total": len(listing.tables),
        "offset": offset,
        "problems": list(listing.problems),
        "tables": [{"id": key, **body} for key, body in zip(keys, facts, strict=True)],
    }


def table(call: Call) -> Json:
    """Return the summary of a version, with advice and what can be searched."""
    opened = call.open()
    snapshot = opened.snapshot
    summary = opened.descriptions.summary()
    rows = opened.count_rows() if summary.rows is None else summary.rows
    body = opened.descriptions.summary_document(summary, rows)
    advice = [
        {
            **core_descriptions.document(each),
            "command": each.command and core_descriptions.table_command(each.command, snapshot),
        }
        for each in summary.warnings
    ]
    return {
        **body,
        "warnings": advice,
        "check_command": core_descriptions.table_command("check", snapshot),
        "search": opened.descriptions.searchable_columns(),
        "has_mem_wal": any(index.name == MEM_WAL for index in snapshot.indices),
    }


def versions(call: Call) -> Json:
    """Return a page of the version graph."""
    graph = core_descriptions.VersionGraph.load(call.location)
    limit = max(1, call.number("limit", 25, _MOST_VERSIONS))
    offset = call.number("offset", 0, _EVERYTHING)
    version = call.optional("find")
    if version is not None:
        row = graph.row_of(call.text("branch") or core_descriptions.MAIN, version)
        if row is None:
            raise VersionNotFoundError(f"version {version} was not found")
        offset = row - row % limit
    return graph.page(offset, limit)


def commit(call: Call) -> Json:
    """Return a version and its differences from the one before, or from another."""
    descriptions = call.open().descriptions
    body = descriptions.commit()
    number = call.optional("before")
    number = body["previous"] if number is None else number
    if number is None:
        return {**body, "diff": None}
    before = call.tables.snapshot(call.table, call.text("branch"), number)
    return {**body, "diff": Table(before).descriptions.diff(descriptions.snapshot)}


def schema(call: Call) -> Json:
    """Return the columns of a version."""
    return call.open().descriptions.schema()


def schema_changes(call: Call) -> Json:
    """Return the versions that changed the columns, some versions at a time."""
    descriptions = call.open().descriptions
    return descriptions.schema_history(call.optional("before"), _MOST_EXAMINED)


def fragments(call: Call) -> Json:
    """Return the fragments of a version as columns of numbers."""
    offset = call.number("offset", 0, _EVERYTHING)
    return call.open().descriptions.fragments(offset, call.number("limit", 10_000, _MOST_FRAGMENTS))


def fragment(call: Call) -> Json:
    """Return a fragment with its files."""
    return call.open().descriptions.fragment(call.required("number"))


def mem_wal(call: Call) -> Json:
    """Return the regions of the MemWAL, and what of them is not merged."""
    opened = call.open()
    status = opened.wal.status()
    is_waiting = any(each.unmerged or each.tail_rows for each in status.regions)
    return {
        "version": status.version,
        "regions": [each.facts() for each in status.regions],
        "command": core_descriptions.table_command("wal merge --flush", opened.snapshot)
        if is_waiting
        else None,
    }


_MOST_ROWS = 200
_MOST_OFFSET = 1 << 62
_MOST_IMAGE = 32 << 20
_MOST_TEXT = 1 << 20
_MOST_NEIGHBOURS = 100
_MOST_DIMENSIONS = 65_536


def rows(call: Call) -> Json:
    """Return a page of rows."""
    request = core_descriptions.PageRequest(
        offset=call.number("offset", 0, _MOST_OFFSET),
        limit=max(1, call.number("limit", 25, _MOST_ROWS)),
        filter=call.text("filter"),
    )
    return call.open().descriptions.rows(request)


def count(call: Call) -> Json:
    """Return the number of rows that match a filter."""
    return {"rows": call.open().descriptions.count_matching(call.text("filter"))}


def image(call: Call) -> Response:
    """Return the image in a cell; other content is refused."""
    media_type, data = call.open().descriptions.cell_image(_place(call), _MOST_IMAGE)
    return Response(data, media_type=media_type)


def text(call: Call) -> Json:
    """Return the whole value of a cell as text."""
    return call.open().descriptions.cell_text(_place(call), _MOST_TEXT)


def sql(call: Call) -> Json:
    """Return the first rows of a query."""
    from lancelake.core.values.reads import SqlRequest  # noqa: PLC0415  # loads DataFusion

    query = call.text("query")
    if query is None:
        raise InvalidRequestError("the query is empty")
    opened = call.open()
    with opened.query(SqlRequest(text=query)).run() as answer:
        first = core_descriptions.FirstRows(answer, _MOST_ROWS)
        rows = core_descriptions.rows_document(first.table(answer.schema), opened.snapshot)
    return {**rows, "has_more": first.has_more}


def search(call: Call) -> Json:
    """Return the rows that a search by text, by vector, or by both finds."""
    opened = call.open()
    words, like = call.text("text"), _row_id(call.body.get("like"))
    filter = call.text("filter")
    request = SearchRequest(
        nearest=_nearest(opened, call, like),
        text=None if words is None else words_query(words),
        k=_count(call.body.get("k", 10)),
        filter=filter if like is None else other_rows(filter, like),
        with_row_id=True,
    )
    rows = core_descriptions.rows_document(opened.search(request), opened.snapshot)
    return {**rows, "has_more": False}


def _place(call: Call) -> core_descriptions.CellPlace:
    column = call.text("column")
    if column is None:
        raise InvalidRequestError("column is missing")
    return core_descriptions.CellPlace(address=call.required("address"), column=column)


def _nearest(opened: Table, call: Call, like: int | None) -> Nearest | None:
    vector = call.body.get("vector")
    if like is None and vector is None:
        return None
    path = opened.vector_column(call.text("column"))
    if like is not None:
        return opened.nearest_to_row(path, like)
    if not isinstance(vector, list) or not 0 < len(vector) <= _MOST_DIMENSIONS:
        raise InvalidRequestError("the vector must be a list of numbers")
    try:
        queries = np.array([vector], dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequestError("the vector must be a list of numbers") from error
    return Nearest(column=path, queries=queries)


def _row_id(value: Any) -> int | None:
    """Return a row id, which is a text because numbers of JSON cannot have 64 bits."""
    if value is None:
        return None
    if not isinstance(value, str) or not (value.isascii() and value.isdecimal()):
        raise InvalidRequestError("like must be the id of a row")
    number = int(value[:21])
    if number >= 1 << 64:
        raise InvalidRequestError("like must be the id of a row")
    return number


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 < value <= _MOST_NEIGHBOURS:
        raise InvalidRequestError(f"k must be a number from 1 to {_MOST_NEIGHBOURS}")
    return value
