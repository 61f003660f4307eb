"""A process that may touch nothing outside of one table, and that opens hostile ones.

Reads lines of JSON, one per table, and answers each with one: what became of every action, what it
tried to reach, and how much memory and processor time the process has taken. Python code is watched
by an audit hook; code in Rust does not raise its events, so whoever starts this also watches the
places that must stay untouched.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tests.hostile import actions, indexed_table, memwal_table
from tests.hostile.actions import attempt

_ACTIONS = {"rows": actions, "indices": indexed_table, "memwal": memwal_table}

_OPENS = {"open": 0, "os.remove": 0, "os.rename": 1, "os.mkdir": 0, "os.rmdir": 0, "os.link": 1}
_SOCKETS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"}
_MEMORY = 8 << 30
_PATIENCE_S = 900


class Guard:
    """An audit hook that notes what is reached outside of the places that are allowed."""

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.reached: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.allowed is None:
            return
        if event in _SOCKETS:
            self.reached.append(f"{event} {args[1:]!r}")
        elif event in _OPENS and isinstance(args[_OPENS[event]], str | bytes):
            path = os.path.realpath(os.fsdecode(args[_OPENS[event]]))
            if not path.startswith(self.allowed):
                self.reached.append(f"{event} {path}")


def peak_mb() -> int:
    """Peak resident memory of this program; `ru_maxrss` would count its parent's as well."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    guard = Guard()
    sys.addaudithook(guard)
    # What Python itself reads while it runs: modules, and what the system says of the machine.
    own = (
        sys.prefix,
        sys.base_prefix,
        str(Path.cwd()),
        "/proc/",
        "/sys/",
        "/usr/",
        "/etc/localtime",
    )
    for line in sys.stdin:
        asked = json.loads(line)
        tried = _ACTIONS[asked["actions"]]
        guard.allowed = (*own, *asked["allowed"])
        guard.reached = []
        faulthandler.dump_traceback_later(_PATIENCE_S, exit=True)
        began = time.process_time()
        outcomes = [
            attempt(name, act, asked["uri"], **asked["how"])
            for name, act in (
                tried.READS | tried.WRITES if asked["writes"] else tried.READS
            ).items()
        ]
        guard.allowed = None
        answer = {
            "failures": [f"{o.name}: {o.text}" for o in outcomes if not o.is_typed],
            "refused": sum(bool(o.text) for o in outcomes),
            "reached": guard.reached,
            "peak_mb": peak_mb(),
            "cpu_s": time.process_time() - began,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
