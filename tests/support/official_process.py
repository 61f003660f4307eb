"""Worker process of an official release, restarted when it dies."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

REPO = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("official_worker.py")
STDERR_TAIL_CHARS = 4000

Json = Any  # whatever `json` can carry


class OfficialError(Exception):
    """The official release refused or failed: `kind` is its exception class, or `Crashed`."""

    def __init__(self, kind: str, message: str, *, release: str, op: str) -> None:
        """Keep what was raised, by which release, on which operation."""
        super().__init__(f"pylance {release} {op}: {kind}: {message}")
        self.kind = kind
        self.message = message
        self.release = release
        self.op = op

    @property
    def is_crash(self) -> bool:
        """True for a panic, a dead process or a hang: a bug there, not a refusal."""
        return self.kind in {"PanicException", "Crashed", "TimedOut"}


def interpreter(release: str) -> Path:
    """Return the Python of the environment that holds the release.

    The package of the codec is a whole release; where no other is installed, it stands for the
    releases of its major version.
    """
    root = Path(os.environ.get("LANCELAKE_INTEROP", REPO / ".interop"))
    pinned = root / release / "bin" / "python"
    if not pinned.exists() and _major(importlib.metadata.version("pylance")) == _major(release):
        return Path(sys.executable)
    return pinned


def _major(release: str) -> str:
    return release.partition(".")[0]


def is_installed(release: str) -> bool:
    """True when the environment of the release exists."""
    return interpreter(release).exists()


class OfficialProcess:
    """One official release in its own environment; `call` returns a value or raises."""

    def __init__(self, release: str, *, timeout_s: float = 120.0) -> None:
        """Prepare; the worker starts with the first call."""
        self.release = release
        self.timeout_s = timeout_s
        self._folder = tempfile.TemporaryDirectory(prefix=f"official-{release}-")
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the worker and remove its files."""
        self.close()

    def close(self) -> None:
        """Stop the worker and remove its files."""
        self._stop()
        self._folder.cleanup()

    def call(self, op: str, **args: Json) -> Json:
        """Send one request and wait for its answer."""
        sent: list[Path] = []
        try:
            line = json.dumps({"op": op, "args": self._encode(args, sent)})
            reply = self._exchange(op, line.encode() + b"\n")
        finally:
            for path in sent:
                path.unlink(missing_ok=True)
        if "error" in reply:
            failure = OfficialError(
                reply["error"]["kind"], reply["error"]["message"], release=self.release, op=op
            )
            if failure.is_crash:
                # A panic may leave locks poisoned inside the library.
                self._stop()
            raise failure
        return _decode(reply["ok"])

    def _exchange(self, op: str, line: bytes) -> Json:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = self._read_line(process.stdout.fileno())
        except (BrokenPipeError, EOFError, TimeoutError) as error:
            kind = "TimedOut" if isinstance(error, TimeoutError) else "Crashed"
            code = self._stop()
            text = f"exit code {code}; stderr: {self._stderr_tail()}"
            raise OfficialError(kind, text, release=self.release, op=op) from error
        return json.loads(answer)

    def _read_line(self, descriptor: int) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(self.timeout_s):
                    raise TimeoutError
                chunk = os.read(descriptor, 1 << 16)
                if not chunk:
                    raise EOFError
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            folder = Path(self._folder.name)
            self._pending = b""
            with (folder / "stderr").open("wb") as stderr:
                self._process = subprocess.Popen(
                    [str(interpreter(self.release)), str(WORKER), str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                )
        return self._process

    def _stop(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        process.communicate()
        return process.returncode

    def _stderr_tail(self) -> str:
        path = Path(self._folder.name) / "stderr"
        text = path.read_text(errors="replace") if path.exists() else ""
        return text[-STDERR_TAIL_CHARS:]

    def _encode(self, value: Json, sent: list[Path]) -> Json:
        if isinstance(value, pa.Table):
            path = Path(self._folder.name) / f"in-{next(self._numbers)}.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, value.schema) as out:
                out.write_table(value)
            sent.append(path)
            return {"$table": str(path)}
        if isinstance(value, pa.Schema):
            return {"$schema": value.serialize().to_pybytes().hex()}
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, Mapping):
            return {k: self._encode(v, sent) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._encode(v, sent) for v in value]
        return value


def _decode(value: Json) -> Json:
    if isinstance(value, list):
        return [_decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "$table" in value:
        path = Path(value["$table"])
        with pa.ipc.open_stream(path.read_bytes()) as reader:
            table = reader.read_all()
        path.unlink()
        return table
    if "$schema" in value:
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(value["$schema"])))
    return {k: _decode(v) for k, v in value.items()}
