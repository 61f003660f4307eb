"""The process that answers queries: one at a time, with limited memory.

It reads the roots and then one question per line, and writes each answer with its head before it.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any

from starlette.responses import Response

from lancelake.ui import views
from lancelake.ui.calls import Answer, Call, OpenTables, answer_call

MEMORY_BYTES = 2 << 30
_ANSWERS: dict[str, Answer] = {
    "rows": views.rows,
    "count": views.count,
    "sql": views.sql,
    "search": views.search,
}


def main() -> None:
    """Answer until the server closes the pipe."""
    _limit_memory()
    answers = os.fdopen(os.dup(1), "wb")
    # What libraries print must not get between the answers.
    os.dup2(2, 1)
    # The server wrote this, not a table.
    tables = OpenTables(pickle.load(sys.stdin.buffer))
    questions: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    while True:
        _write(answers, _answer(tables, json.loads(questions.get())))


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _listen(lines: IO[bytes], questions: SimpleQueue[bytes]) -> None:
    """Pass questions on; end the process, also during a query, when the server is gone."""
    for line in lines:
        questions.put(line)
    os._exit(0)


def _answer(tables: OpenTables, question: dict[str, Any]) -> Response:
    call = Call(
        tables=tables,
        table=question["table"],
        parameters=question["parameters"],
        body=question["body"],
    )
    return answer_call(_ANSWERS[question["answer"]], call)


def _write(answers: IO[bytes], response: Response) -> None:
    body = bytes(response.body)
    head = {"status": response.status_code, "type": response.media_type, "size": len(body)}
    answers.write(json.dumps(head).encode() + b"\n" + body)
    answers.flush()


if __name__ == "__main__":
    main()
