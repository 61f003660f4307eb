"""Addresses at which the codec writes files, and moving them to their final location."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lancelake.data.codec import spool
from lancelake.errors import (
    InternalError,
    LanceTableError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
)
from lancelake.storage import disk_sync
from lancelake.storage.failures import DiskErrors
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectChunks, copy_across
from lancelake.storage.table_files import FileAt
from lancelake.storage.trust import local_path


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecAddress:
    """A file and the address at which the codec writes it."""

    place: FileAt
    local: Path | None
    """The local path: the file's own, or that of a copy to upload."""

    @staticmethod
    def of(place: FileAt) -> CodecAddress:
        """Choose the address; create folders on local disk."""
        match place.root.scheme:
            case "file":
                path = Path(local_path(place.root, place.path))
                with DiskErrors(place.path, writes=True):
                    disk_sync.make_folder(str(path.parent))
                return CodecAddress(place=place, local=path)
            case "memory":
                return CodecAddress(place=place, local=spool.fresh_path())
            case _:
                return CodecAddress(place=place, local=None)

    @property
    def uri(self) -> str:
        """Address for the codec."""
        return self.place.uri if self.local is None else str(self.local)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """Storage options for the codec."""
        return None if self.local is not None else self.place.root.storage_options or None

    @property
    def is_in_place(self) -> bool:
        """Whether the codec writes directly to local disk."""
        return self.place.root.scheme == "file"

    def arrived(self) -> None:
        """Move a finished file to its location; on local disk, sync its bytes."""
        if self.local is None:
            return
        if self.is_in_place:
            with DiskErrors(self.place.path, writes=True):
                disk_sync.sync_file(self.local)
            return
        store = open_store(Location.parse(self.local.parent))
        source = ObjectChunks(store=store, path=self.local.name)
        copy_across(source, open_store(self.place.root), self.place.path)
        self.local.unlink()


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Translate the codec's errors, including panics, into one that names the file."""
    try:
        yield
    except LanceTableError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise _explained(path, error) from error
    except BaseException as error:
        # A panic in the codec's Rust code is not an Exception, and its class has no public name.
        if type(error).__name__ != "PanicException":
            raise
        msg = f"data file {path} cannot be written: {error}"
        raise InternalError(msg, path=path) from error


def _explained(path: str, error: Exception) -> LanceTableError:
    problem = f"data file {path} cannot be written: {error}"
    if "Not supported" in str(error):
        return UnsupportedError(problem, path=path)
    if "Invalid user input" in str(error):
        return SchemaMismatchError(problem, path=path)
    return StorageError(problem, path=path)
