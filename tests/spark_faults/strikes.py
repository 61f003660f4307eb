"""Points at which a process of a Spark application is killed.

The folder `LANCELAKE_STRIKES` holds `armed.json`: a point, a victim and how often the point is
passed before. Points are detected as accesses to files of tables, so that no code is replaced:

- `source`: a task has made some of its rows
- `file`: a task has finished a data file, and has not reported it
- `index`: a task has finished a file of an index, and has not reported it
- `before`, `during`, `after`: the manifest is not written; is written and has no name; has it
- `entry before`, `entry during`, `entry after`: the same, of an entry of a MemWAL
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = "LANCELAKE_STRIKES"
DRIVER = "LANCELAKE_DRIVER_PID"
EXECUTOR = "CoarseGrainedExecutorBackend"
PATIENCE_S = 120.0
_POLL_S = 0.02
_STEPS = {"open": "before", "os.link": "during", "os.remove": "after"}


def install() -> None:
    """Watch this process, if it belongs to a doomed application."""
    if FOLDER in os.environ:
        sys.addaudithook(_watch)


def arm(folder: Path, point: str, victim: str, skips: int = 0) -> None:
    """Let the victim be killed at a point, after others passed it."""
    for old in folder.iterdir():
        old.unlink()
    staged = folder / "arming"
    staged.write_text(json.dumps({"point": point, "victim": victim, "skips": skips}))
    staged.rename(folder / "armed.json")


def struck(folder: Path) -> bool:
    """Whether the victim was killed, or held."""
    return (folder / "struck").exists()


def passing(point: str, where: str = "") -> None:
    """Strike if this is the point, and enough others have passed."""
    folder = Path(os.environ[FOLDER])
    try:
        armed = json.loads((folder / "armed.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return
    if armed["point"] != point or not _is_in_reach(armed["victim"]):
        return
    if armed["victim"] == "slow":
        _hold(folder)
    elif armed["victim"] == "zombie" and struck(folder):
        if (folder / "struck").read_text() == where:
            (folder / "followed").touch()
    elif _number(folder) == armed["skips"]:
        (folder / "struck").write_text(where)
        if armed["victim"] == "zombie":
            _outlive(folder)
        else:
            _kill(armed["victim"])


def middle(batches: Iterable[Any]) -> Iterator[Any]:
    """Pass on the batches of a task, with a point after the first."""
    for number, batch in enumerate(batches):
        if number == 1:
            passing("source")
        yield batch


def _watch(event: str, details: tuple[Any, ...]) -> None:
    if event not in {"open", "os.link", "os.remove"}:
        return
    path = str(details[0])
    point = None
    if event == "open" and ".lance/data/" in path and path.endswith(".lance"):
        point = "file"
    elif event == "open" and ".lance/_indices/" in path and path.endswith((".idx", ".lance")):
        point = "index"
    elif ".lance/_versions/" in path and ".manifest#" in path:
        point = _STEPS[event]
    elif "/wal/" in path and ".arrow#" in path:
        point = f"entry {_STEPS[event]}"
    # The first file of a folder is opened in vain, and again when the folder is made.
    if point is not None and Path(path).parent.exists():
        passing(point, str(Path(path).parent))


def _is_in_reach(victim: str) -> bool:
    """Tasks do not strike drivers, nor drivers tasks."""
    on_executor = EXECUTOR in _command(_parent(os.getppid()))
    return on_executor == (victim in {"worker", "daemon", "executor", "slow", "zombie"})


def _number(folder: Path) -> int:
    """Count this passing among those of all processes."""
    number = 0
    while True:
        try:
            os.close(os.open(folder / f"passed-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            number += 1
        else:
            return number


def _kill(victim: str) -> None:
    me = os.getpid()
    match victim:
        case "worker" | "committer":
            _end(me)
        case "daemon":
            # Its idle workers go with it, or later tasks would run in workers without a parent.
            daemon = os.getppid()
            for process in [daemon, *set(_children(daemon)) - {me}, me]:
                _end(process)
        case "executor":
            _end(_parent(os.getppid()))
        case "driver":
            driver = int(os.environ[DRIVER])
            for process in [*_javas(driver), driver, me]:
                _end(process)


def _hold(folder: Path) -> None:
    """Let the first attempt of a task wait until the second has come as far."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.partitionId() != 0:
        return
    if context.attemptNumber():
        (folder / "struck").touch()
        return
    until = time.monotonic() + PATIENCE_S
    while not struck(folder) and time.monotonic() < until:
        time.sleep(_POLL_S)


def _outlive(folder: Path) -> None:
    """Kill the executor of this task, and wait until its next attempt has come as far."""
    for ending in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    _kill("executor")
    until = time.monotonic() + PATIENCE_S
    while not (folder / "followed").exists() and time.monotonic() < until:
        time.sleep(_POLL_S)


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _javas(parent: int) -> list[int]:
    return [p for p in _children(parent) if "java" in _command(p).partition("\0")[0]]


def _children(parent: int) -> list[int]:
    every = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [process for process in every if _parent(process) == parent]


def _parent(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""
