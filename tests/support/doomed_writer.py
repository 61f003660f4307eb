"""Writer process that changes one of our tables until it is killed.

Arguments, as one JSON object: `uri`, `operations`, and `dies_at`: the number of the access to a
file of the table before which it kills itself, or None. Each operation is a line before it begins
and a line when it is done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.int64())])
WATCHED = {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.scandir"}


def do(uri: str, operation: dict[str, Any]) -> None:
    """Carry out one operation."""
    match operation:
        case {"kind": "append" | "create" | "overwrite" as kind, "ids": ids}:
            lance.write_dataset(pa.table([ids, [0] * len(ids)], schema=SCHEMA), uri, mode=kind)
        case {"kind": "delete", "ids": ids}:
            lance.dataset(uri).delete(_where(ids))
        case {"kind": "update", "ids": ids, "value": value}:
            lance.dataset(uri).update({"value": str(value)}, where=_where(ids))
        case {"kind": "config", "key": key}:
            lance.dataset(uri).update_config({key: "set"})
        case {"kind": "tag", "name": name}:
            lance.dataset(uri).tags.create(name, lance.dataset(uri).version)
        case _:
            raise AssertionError(operation)


def die_at(uri: str, number: int) -> None:
    """Arrange for death right before an access to the table."""
    seen = 0

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in WATCHED and str(details[0]).startswith(uri):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def _where(ids: list[int]) -> str:
    return f"id in ({', '.join(str(i) for i in ids)})"


def main() -> None:
    """Write until the operations are over, or life is."""
    given = json.loads(sys.argv[1])
    if given["dies_at"] is not None:
        die_at(given["uri"], given["dies_at"])
    for number, operation in enumerate(given["operations"]):
        print(json.dumps({"begun": number}), flush=True)
        do(given["uri"], operation)
        print(json.dumps({"done": number}), flush=True)


if __name__ == "__main__":
    main()
