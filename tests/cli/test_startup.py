"""Commands import only the libraries that they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import lancelake

_PROGRAM = """
import sys
from lancelake.cli.group import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
slow = {"pandas", "datafusion", "lance", "pyspark", "faiss", "tantivy"}
slow |= {"numpy", "pyarrow", "pyroaring"}
print(sorted(slow & set(sys.modules)), file=sys.stderr)
"""


def test_count_imports_no_library_that_reads_data(tmp_path: Path) -> None:
    made = lancelake.write_dataset(pa.table({"a": [1, 2, 3, 4]}), tmp_path / "t.lance")
    made.create_scalar_index("a", "BTREE")
    made.delete("a = 4")
    command = [sys.executable, "-c", _PROGRAM, "count", str(tmp_path / "t.lance")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr.split()) == (["3"], ["[]"])
