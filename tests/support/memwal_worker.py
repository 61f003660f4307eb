"""Process that writes to a MemWAL, merges it or collects its garbage until it is killed.

The only argument is JSON: `uri`, `options`, `role`, `slot`, `number`, and `faults` with the `log`
of those that stores are to have. A writer prints `try KEY NUMBER`
before a write and `ack KEY NUMBER` after it; numbers of a slot only grow, and an odd number deletes
its key.
"""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import ContentionError, LanceTableError, WriterFencedError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.table_writer import TableWriter
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from soak.faulty_store import Faults, install
from soak.journal import Journal
from tests.support.memwal_tables import INLINE, keys, rows

KEYS = 8
WRITES = 8


def say(*words: object) -> None:
    """Tell the parent."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def write(place: Location, slot: int, number: int, chance: random.Random) -> int:
    """Take regions over and write some rows; return the last number."""
    mine = TableWriter(open_snapshot(place, Latest()), INLINE)
    for _ in range(chance.randint(1, WRITES)):
        number += 1
        key = slot * KEYS + chance.randrange(KEYS)
        say("try", key, number)
        if number % 2:
            mine.delete(keys(key))
        else:
            mine.put(rows((key, str(number))))
        say("ack", key, number)
        if chance.random() < 0.3:
            mine.flush()
    if chance.random() < 0.5:
        mine.close()
    return number


def work(given: dict[str, Any]) -> None:
    """Work until killed."""
    place, number = Location.parse(given["uri"], given["options"]), given["number"]
    expected: tuple[type[LanceTableError], ...] = (WriterFencedError, ContentionError)
    if given["faults"]:
        expected = (LanceTableError,)
        log = Journal(given["log"], given["role"], "ours")
        install(Faults(**given["faults"]), f"{given['slot']}-{number}", log)
    chance = random.Random(f"{given['slot']}-{number}")
    while True:
        with suppress(*expected):
            match given["role"]:
                case "writer":
                    # After an error the number of the next write is beyond those that were tried.
                    number += WRITES + 1
                    number = write(place, given["slot"], number, chance)
                case "merger":
                    say("merged", len(merge_generations(open_snapshot(place, Latest())).marks))
                case _:
                    newest = open_snapshot(place, Latest())
                    found = collect_garbage(newest, older_than=timedelta(0))
                    say("collected", len(found.files))


if __name__ == "__main__":
    with disk_sync.waiting(waits=False):
        work(json.loads(sys.argv[1]))
