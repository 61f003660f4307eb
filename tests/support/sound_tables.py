"""A table with every kind of content, for tests of the checker and the command line."""

from __future__ import annotations

from pathlib import Path

from lancelake.maintenance.check.finding import Finding
from lancelake.maintenance.check.run import Versions, check
from lancelake.storage.location import Location
from tests.support.official import Official

# Versions: 1 create, 2 append, 3 delete, 4 index, 5 config; a tag on 1, a branch from 5.
BUILD = """
def rows(first, last):
    numbers = list(range(first, last))
    schema = pa.schema([
        pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string()),
        pa.field("meta", pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])),
    ])
    meta = [{"a": i, "b": "b"} for i in numbers]
    return pa.table([numbers, [f"row {i}" for i in numbers], meta], schema=schema)

lance.write_dataset(rows(0, 20), uri, enable_stable_row_ids=True, max_rows_per_file=10,
                    data_storage_version="2.1")
lance.write_dataset(rows(20, 30), uri, mode="append")
lance.dataset(uri).delete("id in (1, 2, 25)")
lance.dataset(uri).create_scalar_index("id", "BTREE")
lance.dataset(uri).update_config({"key": "value"})
lance.dataset(uri).tags.create("first", 1)
branch = lance.dataset(uri).create_branch("side")
lance.write_dataset(rows(30, 35), branch.uri, mode="append")
"""


def build_sound(official: Official, root: Path) -> Path:
    """Write a table: three fragments of ten rows, two with deletions, stable row ids, an index."""
    official.run(root, BUILD)
    return root


def findings(root: Path, *, data: bool = False, versions: Versions = "latest") -> list[Finding]:
    """Check a table."""
    return list(check(Location.parse(root), data=data, versions=versions))


def codes(root: Path, *, data: bool = False, versions: Versions = "latest") -> list[str]:
    """Check a table; return the codes of what is found, but for those on branches."""
    found = findings(root, data=data, versions=versions)
    return [finding.code for finding in found if finding.branch is None]
