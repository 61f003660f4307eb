"""Progress callbacks of writes and index builds."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from lancelake.core.values.metadata import Fragment, Location
from lancelake.core.values.writes import FileWatch
from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance._values.opened import call_text

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "IndexProgress",
    "NoopFragmentWriteProgress",
]


@dataclass(frozen=True)
class IndexProgress:
    """A step of an index build; amounts are None if they are unknown."""

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """Completed fraction, at most 1; None if it is unknown."""
        if self.completed is None or not self.total:
            return None
        return min(self.completed / self.total, 1.0)


class FragmentWriteProgress(ABC):
    """Receives an event for every fragment that is written."""

    @abstractmethod
    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Called before a fragment is written; its id may not be final."""

    @abstractmethod
    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Called after a fragment is written."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Ignores all events."""

    def __repr__(self) -> str:
        return call_text(self)

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Stores a file for every fragment, and a second one while it is being written."""

    PROGRESS_EXT: str = ".in_progress"

    def __init__(self, base_uri: str, metadata: dict[str, str] | None = None) -> None:
        """Store the files in a folder; `metadata` is written to the second one."""
        self._base_uri = base_uri
        self._store = Location.parse(base_uri).store
        self._metadata = metadata or {}

    def __repr__(self) -> str:
        return call_text(self, self._base_uri)

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Write both files."""
        body = {"fragment_id": fragment.id, "metadata": self._metadata}
        self._store.put(self._in_progress(fragment), json.dumps(body).encode())
        self._store.put(f"fragment_{fragment.id}.json", json.dumps(fragment.to_json()).encode())

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Remove the second file."""
        self._store.delete(self._in_progress(fragment))

    def _in_progress(self, fragment: FragmentMetadata) -> str:
        return f"fragment_{fragment.id}{self.PROGRESS_EXT}"


class ProgressWatch:
    """Reports data files to a `FragmentWriteProgress`."""

    def __init__(self, progress: FragmentWriteProgress) -> None:
        """Report to this object."""
        self._progress = progress

    def __repr__(self) -> str:
        return call_text(self, self._progress)

    def begun(self, fragment: Fragment) -> None:
        """Report a file that is about to be written."""
        self._notify("begin", fragment)

    def completed(self, fragment: Fragment) -> None:
        """Report a file that was written."""
        self._notify("complete", fragment)

    def _notify(self, name: str, fragment: Fragment) -> None:
        try:
            getattr(self._progress, name)(from_fragment(fragment))
        except Exception as error:
            problem = f"Failed to call {name}() on {type(self._progress).__name__}: {error!r}"
            raise InvalidRequestError(problem) from error


def watching(progress: Any) -> FileWatch | None:
    """Return the receiver of file events; None without one, or for a function of counts."""
    return ProgressWatch(progress) if hasattr(progress, "begin") else None
