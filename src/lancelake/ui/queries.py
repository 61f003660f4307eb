"""Queries in processes that are stopped at a time limit, or when the page no longer waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Self

from starlette.responses import Response

from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.ui.calls import Call, error_response

_PROCESSES = 4
_SECONDS = 60.0
_CLIENT_GONE = 499
# Without -P, a folder with tables could bring modules of its own.
_COMMAND = (sys.executable, "-P", "-m", "lancelake.ui.query_process")


class Queries:
    """Answers queries, a few at the same time."""

    def __init__(
        self,
        roots: Sequence[Location],
        *,
        seconds: float = _SECONDS,
        command: Sequence[str] = _COMMAND,
    ) -> None:
        """Limit the time of a query, in which it may wait for others."""
        self._start: Callable[[], _Process] = partial(_Process, command, roots)
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(_PROCESSES, thread_name_prefix="query")
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._running: set[_Query] = set()
        self._has_ended = False

    def __enter__(self) -> Self:
        """Start the first process, so that the first query need not wait for it."""
        self._idle.append(self._start())
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Stop all processes."""
        with self._lock:
            self._has_ended = True
            for query in self._running:
                query.stop()
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()
        self._threads.shutdown(cancel_futures=True)

    async def answer(
        self, name: str, call: Call, client_is_gone: Callable[[], Awaitable[None]]
    ) -> Response:
        """Answer a call in another process; stop it at the time limit, or without a client."""
        query = _Query(name, call)
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._run, query)
        gone = asyncio.ensure_future(client_is_gone())
        try:
            done, _ = await asyncio.wait(
                (running, gone), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            gone.cancel()
            query.stop()
        if running in done:
            return running.result()
        if gone in done:
            return Response(status_code=_CLIENT_GONE)
        problem = f"the query was stopped after {self._seconds:g} seconds"
        return error_response(InvalidRequestError(problem, action="Read less, or use a filter."))

    def _run(self, query: _Query) -> Response:
        with self._lock:
            process = self._idle.pop() if self._idle else None
            self._running.add(query)
        process = process or self._start()
        response = query.run(process)
        with self._lock:
            self._running.discard(query)
            if response is not None and not self._has_ended:
                self._idle.append(process)
                return response
        process.close()
        self._replace()
        return error_response(
            InvalidRequestError(
                "the query was stopped: its process failed, most likely for lack of memory",
                action="Read less, or make smaller values.",
            )
        )

    def _replace(self) -> None:
        """Start a process in place of one that was stopped; the next query need not wait for it."""
        with self._lock:
            if not self._idle and not self._has_ended:
                self._idle.append(self._start())


class _Query:
    """A query that waits for a process, runs in one, or has ended."""

    def __init__(self, name: str, call: Call) -> None:
        question = {
            "answer": name,
            "table": call.table,
            "parameters": dict(call.parameters),
            "body": dict(call.body),
        }
        self._question = json.dumps(question).encode() + b"\n"
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._has_ended = False

    def run(self, process: _Process) -> Response | None:
        """Run in a process; return None if that was stopped."""
        with self._lock:
            if self._has_ended:
                return None
            self._process = process
        response = process.answer(self._question)
        with self._lock:
            self._has_ended = True
        return response

    def stop(self) -> None:
        """Stop the query unless it has ended."""
        with self._lock:
            if not self._has_ended and self._process is not None:
                self._process.stop()
            self._has_ended = True


class _Process:
    def __init__(self, command: Sequence[str], roots: Sequence[Location]) -> None:
        self._popen = subprocess.Popen(  # a module of our own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._send(pickle.dumps(tuple(roots)))

    def answer(self, question: bytes) -> Response | None:
        """Return the answer; None if the process has ended."""
        self._send(question)
        if self._popen.stdout is None:
            return None
        head = self._popen.stdout.readline()
        if not head.endswith(b"\n"):
            return None
        found = json.loads(head)
        body = self._popen.stdout.read(found["size"])
        if len(body) < found["size"]:
            return None
        return Response(body, found["status"], media_type=found["type"])

    def stop(self) -> None:
        """End the process."""
        self._popen.kill()
        self._popen.wait()

    def close(self) -> None:
        """End the process and close its pipes, which no other thread uses."""
        self.stop()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _send(self, data: bytes) -> None:
        if self._popen.stdin is None:
            return
        try:
            self._popen.stdin.write(data)
            self._popen.stdin.flush()
        except BrokenPipeError:
            # The process has ended; the answer will be missing.
            return
