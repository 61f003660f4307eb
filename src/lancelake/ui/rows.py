"""Answers with rows: pages, single values, queries and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.responses import Response

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.scan.nearest import Nearest
from lancelake.scan.search.request import (
    SearchRequest,
    other_rows,
    vector_column,
    words_query,
)
from lancelake.scan.search.run import search as search_rows
from lancelake.scan.search.stored_vectors import nearest_to_row
from lancelake.table.describe.documents import Json
from lancelake.table.describe.first_rows import first_rows
from lancelake.table.describe.row_page import (
    CellPlace,
    PageRequest,
    cell_image,
    cell_text,
    count_matching,
    row_page,
    rows_document,
)
from lancelake.ui.calls import Call

_MOST_ROWS = 200
_MOST_OFFSET = 1 << 62
_MOST_IMAGE = 32 << 20
_MOST_TEXT = 1 << 20
_MOST_NEIGHBOURS = 100
_MOST_DIMENSIONS = 65_536


def rows(call: Call) -> Json:
    """Return a page of rows."""
    request = PageRequest(
        offset=call.number("offset", 0, _MOST_OFFSET),
        limit=max(1, call.number("limit", 25, _MOST_ROWS)),
        filter=call.text("filter"),
    )
    return row_page(call.snapshot, request)


def count(call: Call) -> Json:
    """Return the number of rows that match a filter."""
    return {"rows": count_matching(call.snapshot, call.text("filter"))}


def image(call: Call) -> Response:
    """Return the image in a cell; other content is refused."""
    media_type, data = cell_image(call.snapshot, _place(call), _MOST_IMAGE)
    return Response(data, media_type=media_type)


def text(call: Call) -> Json:
    """Return the whole value of a cell as text."""
    return cell_text(call.snapshot, _place(call), _MOST_TEXT)


def sql(call: Call) -> Json:
    """Return the first rows of a query."""
    from lancelake.table.sql import Query, SqlRequest  # noqa: PLC0415  # loads DataFusion

    query = call.text("query")
    if query is None:
        raise InvalidRequestError("the query is empty")
    snapshot = call.snapshot
    with Query(snapshot, SqlRequest(text=query)).run() as answer:
        first = first_rows(answer, answer.schema, _MOST_ROWS)
    return {**rows_document(first.table, snapshot), "has_more": first.has_more}


def search(call: Call) -> Json:
    """Return the rows that a search by text, by vector, or by both finds."""
    snapshot = call.snapshot
    words, like = call.text("text"), _row_id(call.body.get("like"))
    filter = call.text("filter")
    request = SearchRequest(
        nearest=_nearest(snapshot, call, like),
        text=None if words is None else words_query(words),
        k=_count(call.body.get("k", 10)),
        filter=filter if like is None else other_rows(filter, like),
        with_row_id=True,
    )
    return {**rows_document(search_rows(snapshot, request), snapshot), "has_more": False}


def _place(call: Call) -> CellPlace:
    column = call.text("column")
    if column is None:
        raise InvalidRequestError("column is missing")
    return CellPlace(address=call.required("address"), column=column)


def _nearest(snapshot: Snapshot, call: Call, like: int | None) -> Nearest | None:
    vector = call.body.get("vector")
    if like is None and vector is None:
        return None
    path = vector_column(snapshot, call.text("column"))
    if like is not None:
        return nearest_to_row(snapshot, path, like)
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
