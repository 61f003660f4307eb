"""What is the URI of a dataset? What its user wrote, as long as the user stays on one line."""

from __future__ import annotations

import os
from pathlib import Path

from lancelake.format import layout
from lancelake.pylance._values.opened import OpenedDataset


def uri_of(where: str | Path | OpenedDataset) -> str:
    """Return the URI of what is written to: a place, or the line that a dataset is on."""
    if isinstance(where, str | Path):
        return os.fspath(where)
    branch = where._snapshot.branch
    suffix = "" if branch is None else f"/{layout.branch_root(branch)}"
    return where.uri if where.uri.endswith(suffix) else f"{where.uri.rstrip('/')}{suffix}"


def branch_uri(dataset: OpenedDataset, name: str) -> str:
    """Return the URI of a branch of the same table."""
    branch = dataset._snapshot.branch
    current = "" if branch is None else f"/{layout.branch_root(branch)}"
    return f"{dataset.uri.removesuffix(current).rstrip('/')}/{layout.branch_root(name)}"
