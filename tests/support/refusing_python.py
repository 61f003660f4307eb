"""Interpreters that do not plan, each for a reason of its own, and the client that meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.errors import PySparkException

from tests.support.connected import connected

_PYTHON = f'exec "{sys.executable}"'
INTERPRETERS = {
    "silent": "exit 3",
    "killed": "kill -9 $$",
    # Without its site, Python finds the packages of Spark alone, which the driver names.
    "no package": f'{_PYTHON} -S "$@"',
    "own error": f'PYSPARK_GATEWAY_SECRET=wrong {_PYTHON[5:]} "$@"',
    "other release": f'{_PYTHON} "$@"',
}
"""Bodies of scripts, by what is wrong; the last is right, and the jar is not."""


def main() -> None:
    """Print the error of a query for each interpreter, as one JSON object."""
    port, python = int(sys.argv[1]), Path(sys.argv[2])
    said = {}
    with connected(port) as spark:
        for name, body in {"no Python": None, **INTERPRETERS}.items():
            if body is not None:
                python.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
                python.chmod(0o755)
            try:
                spark.sql("SHOW NAMESPACES IN lance").collect()
                said[name] = "no error"
            except PySparkException as failure:
                said[name] = str(failure)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
