"""Storm: processes of a MemWAL that are killed or stopped for a while, and a check afterwards."""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.memwal_worker import WRITES

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "tests" / "support" / "memwal_worker.py"
_READ_BYTES = 1 << 16
LINES_BETWEEN = 12
"""Lines of all processes between two blows."""


@dataclass
class Journal:
    """Numbers of writes by key: the last acknowledged one, and those that were tried since."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    tried: dict[int, list[int]] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    """Last number of each slot."""
    acknowledgements: int = 0

    def hear(self, slot: int, line: str) -> None:
        """Note a line of a writer."""
        word, *numbers = line.split()
        if word == "try":
            key, number = map(int, numbers)
            self.tried.setdefault(key, []).append(number)
            self.last[slot] = number
        elif word == "ack":
            key, number = map(int, numbers)
            self.acknowledged[key] = number
            self.tried[key] = [n for n in self.tried[key] if n > number]
            self.acknowledgements += 1

    def wrong(self, found: dict[int, str | None]) -> list[str]:
        """Return what contradicts the rows that were found."""
        said = []
        for key in {*self.acknowledged, *self.tried, *found}:
            numbers = [self.acknowledged.get(key, 1), *self.tried.get(key, [])]
            values = [None if n % 2 else str(n) for n in numbers]
            if found.get(key) not in values:
                said.append(f"key {key} is {found.get(key)}, not one of {values}")
        return said


class Storm:
    """Processes with roles; one is struck after some lines of all."""

    def __init__(
        self,
        uri: Path | str,
        roles: list[str],
        seed: int | str,
        *,
        options: dict[str, str] | None = None,
        faults: dict[str, float] | None = None,
        log: Path | None = None,
    ) -> None:
        self.journal = Journal()
        self.kills = 0
        self._given = {
            "uri": str(uri),
            "options": options,
            "faults": faults or {},
            "log": str(log or os.devnull),
        }
        self._roles = roles
        self._chance = random.Random(seed)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._parts: dict[int, bytes] = {}
        self._stopped: set[int] = set()
        self._ready = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        for slot in range(len(self._roles)):
            self._start(slot)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for slot in [*self._running]:
            self._kill(slot)
        self._ready.close()

    def hear(self, lines: int) -> None:
        """Read lines of the processes that run."""
        while lines > 0:
            for key, _ in self._ready.select():
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    _, errors = self._running[key.data].communicate()
                    raise AssertionError(f"{self._roles[key.data]} ended: {errors.decode()}")
                lines -= self._note(key.data, data)

    def strike(self) -> None:
        """Kill a process and start it again, or stop one for a while."""
        slot = self._chance.choice([*self._running])
        if slot in self._stopped:
            self._stopped.discard(slot)
            self._running[slot].send_signal(signal.SIGCONT)
        elif self._chance.random() < 0.3 and len(self._stopped) < len(self._running) // 2:
            self._stopped.add(slot)
            self._running[slot].send_signal(signal.SIGSTOP)
        else:
            self._kill(slot)
            self._start(slot)
            self.kills += 1

    def _note(self, slot: int, data: bytes) -> int:
        """Note complete lines, and keep the rest for later."""
        *complete, self._parts[slot] = (self._parts[slot] + data).split(b"\n")
        for line in complete:
            self.journal.hear(slot, line.decode())
        return len(complete)

    def _start(self, slot: int) -> None:
        number = self.journal.last.get(slot, 0) + WRITES
        given = {**self._given, "role": self._roles[slot], "slot": slot, "number": number}
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}"},
        )
        self._running[slot], self._parts[slot] = process, b""
        assert process.stdout is not None
        self._ready.register(process.stdout, selectors.EVENT_READ, slot)

    def _kill(self, slot: int) -> None:
        process = self._running.pop(slot)
        self._stopped.discard(slot)
        assert process.stdout is not None
        self._ready.unregister(process.stdout)
        process.kill()
        rest, errors = process.communicate()
        self._note(slot, rest)
        assert process.returncode == -signal.SIGKILL, errors.decode()
