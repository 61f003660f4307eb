"""Planner that kills itself where a test says, behind a launcher that outlives it.

A test writes into the file `doom` the name of an access to a file of a table, an event of
`sys.audit`; the planner dies right before it. The file `planner.json` has its process, and the port
and the secret of its gateway.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from lancelake.spark.planner import process as planner

BEFORE_READ = "os.scandir"
BEFORE_PUBLISH = "os.link"
AFTER_PUBLISH = "os.remove"
LAST_WORDS = "the test asks for my death"
# The driver cannot see that the planner is dead: the process that it has started runs on.
_LAUNCHER = """#!/bin/sh
exec 3<&0
PYTHONPATH="{repository}:$PYTHONPATH" "{python}" -m tests.support.doomed_planner "{root}" <&3 &
wait
exec cat <&3 > /dev/null 2>&1
"""


def launcher(root: Path) -> Path:
    """Write a launcher into a folder; it is the Python of a driver whose tables are below it."""
    file = root / "python"
    repository = Path(__file__).parents[2]
    text = _LAUNCHER.format(repository=repository, python=sys.executable, root=root)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return file


def main() -> None:
    """Plan until the driver ends, or a test says."""
    root = Path(sys.argv[1])
    known = {
        "pid": os.getpid(),
        "port": int(os.environ["PYSPARK_GATEWAY_PORT"]),
        "secret": os.environ["PYSPARK_GATEWAY_SECRET"],
    }
    (root / "planner.json").write_text(json.dumps(known), encoding="utf-8")
    doom, tables = root / "doom", str(root / "tables")

    def watch(event: str, details: tuple[Any, ...]) -> None:
        if event not in (BEFORE_READ, BEFORE_PUBLISH, AFTER_PUBLISH):
            return
        if str(details[0]).startswith(tables) and doom.exists() and doom.read_text() == event:
            doom.unlink()
            os.write(2, f"{LAST_WORDS}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    planner.main()


if __name__ == "__main__":
    main()
