"""URIs of datasets and branches."""

from __future__ import annotations

import os
from pathlib import Path

from lancelake.format import layout
from lancelake.pylance._values.opened import OpenedDataset


def uri_of(where: str | Path | OpenedDataset) -> str:
    """Return the URI to write to: a location, or the version line of a dataset."""
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
