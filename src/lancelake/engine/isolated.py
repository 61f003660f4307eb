"""Tasks in child processes with a memory limit, for work on files that may end its process."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Protocol

from lancelake.engine import port
from lancelake.engine.port import Task
from lancelake.errors import InternalError
from lancelake.threads import Future, Pool, after_fork, usable_cores

TASK, RESULT, ERROR = b"t", b"r", b"e"
_IDLE_S = 20.0
_HEADER = struct.Struct("<cQ")


def send(stream: IO[bytes], kind: bytes, payload: bytes) -> None:
    """Write a message."""
    stream.write(_HEADER.pack(kind, len(payload)))
    stream.write(payload)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """Read a message; None when the other process has closed the stream, or ended."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    kind, length = _HEADER.unpack(header)
    payload = stream.read(length)
    return (kind, payload) if len(payload) == length else None


def main() -> None:
    """Run tasks until the input ends, or there is none for a while."""
    _limit_memory(int(sys.argv[1]))
    # What a library prints must not be taken for a message.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    source = sys.stdin.buffer
    while select.select([source], [], [], _IDLE_S)[0]:
        message = receive(source)
        if message is None:
            return
        send(output, *_answer(message[1]))


def _answer(message: bytes) -> tuple[bytes, bytes]:
    try:
        return RESULT, port.loads(message).run()
    except Exception as error:  # noqa: BLE001  # it is raised in the parent
        try:
            return ERROR, port.dumps(error)
        except (TypeError, AttributeError, pickle.PicklingError):
            return ERROR, port.dumps(InternalError(f"{type(error).__name__}: {error}"))


def _limit_memory(size_bytes: int) -> None:
    """Limit the memory that this process may take, beyond address space that it only reserves."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


_MOST_CHILDREN = 4
# To start a child takes as long as many small tasks.
_TASKS_PER_CHILD = 8
_MOST_MEMORY_BYTES = 8 << 30
_LEAST_MEMORY_BYTES = 2 << 30
_MESSAGE_BYTES = 4096


class FragileTask(Task, Protocol):
    """A task that may end the process in which it runs."""

    def parts(self) -> Sequence[FragileTask]:
        """Return the task in smaller ones, which run one by one after it ended a process."""

    def lost(self, reason: str) -> bytes:
        """Return the result of a task that ended its process."""


class _LostChildError(Exception):
    """A child ended while it ran a task."""


def run_isolated(tasks: Sequence[FragileTask]) -> Iterator[bytes]:
    """Yield the results of tasks in their order, several for a task that was run in parts.

    The first error of a task is raised.
    """
    count = min(_MOST_CHILDREN, usable_cores(), 1 + len(tasks) // _TASKS_PER_CHILD)
    busy: set[_Child] = set()
    with Pool(count) as pool:
        waiting = deque(tasks)
        started: deque[Future[list[bytes]]] = deque()
        try:
            while waiting or started:
                while waiting and len(started) < 2 * count:
                    started.append(pool.submit(_results, waiting.popleft(), busy))
                yield from started.popleft().result()
        finally:
            for future in started:
                future.cancel()
            for child in tuple(busy):
                child.kill()


def _results(task: FragileTask, busy: set[_Child]) -> list[bytes]:
    try:
        return [_result(task, busy)]
    except _LostChildError as lost:
        parts = task.parts()
        if len(parts) > 1:
            return [result for part in parts for result in _results(part, busy)]
        return [task.lost(str(lost))]


def _result(task: Task, busy: set[_Child]) -> bytes:
    message = port.dumps(task)
    while True:
        child = _idle.taken()
        busy.add(child)
        try:
            answer = child.ask(message)
        finally:
            busy.discard(child)
        # A child that had nothing to do for a while has ended.
        if answer is not None:
            break
    _idle.add(child)
    kind, payload = answer
    if kind == RESULT:
        return payload
    error: BaseException = port.loads(payload)
    raise error


class _Child:
    """A process that runs tasks, one after the other."""

    def __init__(self) -> None:
        # What a killed process leaves is removed with the folder.
        self._folder = tempfile.TemporaryDirectory(prefix="lancelake-")
        self._messages: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115  # closed with the child
            prefix="lancelake-"
        )
        path = os.pathsep.join(part for part in sys.path if part)
        code = "from lancelake.engine.isolated import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(_memory_bytes())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": self._folder.name},
            start_new_session=True,
        )

    def ask(self, message: bytes) -> tuple[bytes, bytes] | None:
        """Run a task; None if the child had ended before, by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            send(self._process.stdin, TASK, message)
            answer = receive(self._process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is not None:
            return answer
        status = self._process.wait()
        try:
            if status == 0:
                return None
            raise _LostChildError(self._reason(status))
        finally:
            self.close()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process, which is idle, and remove what it left."""
        for stream in (self._process.stdin, self._process.stdout):
            # What was written to a process that has ended is lost.
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self._process.wait()
        self._messages.close()
        self._folder.cleanup()

    def _reason(self, status: int) -> str:
        end = self._messages.seek(0, os.SEEK_END)
        self._messages.seek(max(0, end - _MESSAGE_BYTES))
        lines = self._messages.read().decode(errors="replace").splitlines()
        memory = [line for line in lines if line.startswith("memory allocation of")]
        if memory:
            return memory[-1]
        if status > 0:
            return f"exit code {status}"
        try:
            return f"signal {signal.Signals(-status).name}"
        except ValueError:
            return f"signal {-status}"


class _Idle:
    """Children without a task."""

    def __init__(self) -> None:
        self._children: list[_Child] = []
        self._lock = threading.Lock()

    def taken(self) -> _Child:
        """Return a child, a new one if there is none."""
        with self._lock:
            if self._children:
                return self._children.pop()
        return _Child()

    def add(self, child: _Child) -> None:
        """Keep a child for the next task."""
        with self._lock:
            self._children.append(child)

    def close(self) -> None:
        """End all."""
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.close()

    def leave_to_parent(self) -> None:
        """Forget the children, in a forked process: they are not its own."""
        _left.extend(self._children)
        self._children, self._lock = [], threading.Lock()


_idle = _Idle()
_left: list[_Child] = []
after_fork(_idle.leave_to_parent)
atexit.register(_idle.close)


def _memory_bytes() -> int:
    """Return what a child may take: half of the memory of the machine, within bounds."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _MOST_MEMORY_BYTES
    return min(_MOST_MEMORY_BYTES, max(_LEAST_MEMORY_BYTES, total // 2))
