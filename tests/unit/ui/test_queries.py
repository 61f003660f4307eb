"""Queries are stopped at their time limit, with their client, and with their process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.responses import Response
from starlette.types import Message

from lancelake.ui.calls import Call, OpenTables
from lancelake.ui.queries import Queries
from lancelake.ui.server import Access, application
from tests.unit.ui.conftest import PATIENCE_S, PORT, TOKEN, Ask, status_of_post

CALL = Call(tables=OpenTables([]), table="t", parameters={}, body={"query": "SELECT 1"})
START = "import json, os, pickle, sys; pickle.load(sys.stdin.buffer); "
ANSWERS = (
    START + "out = sys.stdout.buffer\n"
    "for line in sys.stdin.buffer:\n"
    "    body = json.dumps([os.getpid(), json.loads(line)]).encode()\n"
    "    head = json.dumps({'status': 200, 'type': 'application/json', 'size': len(body)})\n"
    "    out.write(head.encode() + b'\\n' + body); out.flush()"
)
ENDLESS = START + "[None for _ in iter(int, 1)]"
ENDS = START + "sys.stdin.buffer.readline(); os.abort()"


async def _stays() -> None:
    await asyncio.Event().wait()


async def _is_gone() -> None:
    return


@contextmanager
def _queries(program: str, **options: Any) -> Iterator[Queries]:
    with Queries([], command=(sys.executable, "-c", program), **options) as queries:
        yield queries


def _answer(queries: Queries, gone: Callable[[], Any] = _stays) -> Response:
    async def answer() -> Response:
        return await asyncio.wait_for(queries.answer("sql", CALL, gone), PATIENCE_S)

    return asyncio.run(answer())


def test_a_process_answers_one_query_after_the_other() -> None:
    with _queries(ANSWERS) as queries:
        (first, question), (second, _) = (json.loads(_answer(queries).body) for _ in range(2))
    assert first == second
    assert question == {
        "answer": "sql",
        "table": "t",
        "parameters": {},
        "body": {"query": "SELECT 1"},
    }


def test_a_query_is_stopped_at_its_time_limit() -> None:
    with _queries(ENDLESS, seconds=0.1) as queries:
        found = _answer(queries)
    assert found.status_code == 400
    assert "stopped after 0.1 seconds" in json.loads(found.body)["problem"]


def test_a_query_is_stopped_when_its_client_is_gone() -> None:
    with _queries(ENDLESS) as queries:
        assert _answer(queries, _is_gone).status_code == 499


def test_a_client_that_disconnects_is_gone(tables: OpenTables, photos_id: str) -> None:
    body = json.dumps({"query": "SELECT 1"}).encode()
    messages: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": body}]

    async def receive() -> Message:
        return messages.pop()

    with _queries(ENDLESS) as queries:
        app = application(tables, Access.at(PORT, TOKEN), queries)
        assert status_of_post(app, f"/api/tables/{photos_id}/sql", receive) == 499


def test_a_query_whose_process_ends_is_an_error_and_the_next_one_is_answered() -> None:
    with _queries(ENDS) as queries:
        for _ in range(2):
            found = _answer(queries)
            assert found.status_code == 400
            assert "lack of memory" in json.loads(found.body)["problem"]


def test_queries_that_never_end_do_not_stop_other_answers(ask: Ask, photos_id: str) -> None:
    async def run(queries: Queries) -> Any:
        endless = [asyncio.create_task(queries.answer("sql", CALL, _stays)) for _ in range(9)]
        found = await asyncio.to_thread(ask, f"tables/{photos_id}/rows")
        for query in endless:
            query.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        return found

    with _queries(ENDLESS) as queries:
        assert asyncio.run(run(queries))["rows"]
