"""Record of an index build: what an earlier attempt finished is not built again.

A record is a folder beside those of segments, which has the name of what is built: the fragments
with their files and deletions, the column, the kind and its parameters. Attempts to build the same
find the same folder. No version refers to it: cleanup removes the records of
builds that were not resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID, uuid5

import numpy as np

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import AlreadyExistsError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import IdKind, Parameters
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.index.request import IndexTarget
from lancelake.version import __version__

_NAMES = UUID("6f1d4b0e-58a3-4c6c-9d5e-2f0a7b7c41d2")
_CLAIM = "claimed"


def build_name(
    base: Snapshot,
    target: IndexTarget,
    fragments: Iterable[int],
    stored: IdKind,
    parameters: Parameters,
) -> UUID:
    """Return the name of what is built; equal names have equal rows."""
    wanted = set(fragments)
    facts = [
        __version__,
        repr(target.field_id),
        target.path,
        target.kind.name,
        str(target.dtype),
        repr(stored),
        json.dumps(dict(parameters), sort_keys=True, default=_shown),
        *(repr(fragment) for fragment in base.manifest.fragments if fragment.id in wanted),
    ]
    return uuid5(_NAMES, "\n".join(facts))


def _shown(value: object) -> str:
    # The text of a long array leaves out its middle.
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A folder of index files or of notes about them, by the names of its files."""

    location: Location
    unique: UUID

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none."""
        try:
            return open_store(self.location).get(self._path(name))
        except ObjectNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing any other."""
        open_store(self.location).put(self._path(name), data)

    def names(self) -> list[str]:
        """Return the names of all files."""
        return open_store(self.location).list_names(layout.index_dir(self.unique))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        open_store(self.location).delete_many([self._path(name) for name in names])

    def has(self, files: Iterable[IndexFile]) -> bool:
        """Whether all of these files exist and are complete."""
        store = open_store(self.location)
        try:
            sizes = [(store.head(self._path(f.path)).size_bytes, f.size_bytes) for f in files]
        except ObjectNotFoundError:
            return False
        return all(found == wanted for found, wanted in sizes)

    def claim(self) -> bool:
        """Reserve the folder for one attempt, which completes the segment in it, and for ever."""
        try:
            open_store(self.location).create(self._path(_CLAIM), b"")
        except AlreadyExistsError:
            return False
        return True

    @property
    def is_claimed(self) -> bool:
        """Whether an attempt has reserved the folder."""
        return self.read(_CLAIM) is not None

    def remove_others(self, files: Iterable[IndexFile]) -> None:
        """Remove what failed attempts left in the folder of a segment that has these files."""
        kept = {_CLAIM, *(file.path for file in files)}
        self.remove(name for name in self.names() if name not in kept)

    def _path(self, name: str) -> str:
        return f"{layout.index_dir(self.unique)}/{name}"
