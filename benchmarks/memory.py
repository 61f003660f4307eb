"""How much memory does a stream need? Each reader runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import pathlib, sys
library, uri = sys.argv[1:]
module = __import__(library)
rows = sum(batch.num_rows for batch in module.dataset(uri).to_batches())
status = pathlib.Path("/proc/self/status").read_text()
print(rows, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def peak_mb(library: str, uri: str) -> int:
    """Stream a whole table and return the peak resident size in MB."""
    command = [sys.executable, "-c", _PROGRAM, library, uri]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(output.split()[1])
