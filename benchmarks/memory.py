"""How much memory does a stream need? Each reader runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, sys
library, uri = sys.argv[1:]
module = __import__(library)
rows = sum(batch.num_rows for batch in module.dataset(uri).to_batches())
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_mb(library: str, uri: str) -> int:
    """Stream a whole table and return the peak resident size in MB."""
    command = [sys.executable, "-c", _PROGRAM, library, uri]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(output.split()[1])
