"""Benchmarks of streaming memory; each reader runs in a separate process."""

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


_FILTERED = """
import pathlib, sys
library, uri, condition = sys.argv[1:]
module = __import__(library)

def megabytes(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(name)[2].split()[0]) // 1024

dataset = module.dataset(uri)
dataset.count_rows(condition)
before = megabytes("VmRSS:")
rows = sum(batch.num_rows for batch in dataset.to_batches(filter=condition))
print(rows, megabytes("VmHWM:") - before)
"""


def filtered_growth_mb(library: str, uri: str, condition: str) -> int:
    """Stream the rows that a filter keeps; return how far the resident size rises, in MB."""
    command = [sys.executable, "-c", _FILTERED, library, uri, condition]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(output.split()[1])


def peak_mb(library: str, uri: str) -> int:
    """Stream a whole table and return the peak resident size in MB."""
    command = [sys.executable, "-c", _PROGRAM, library, uri]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(output.split()[1])
