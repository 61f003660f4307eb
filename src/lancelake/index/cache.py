"""Cache of index file content, with a byte limit.

Index files never change, so cached content stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from lancelake.caches import CacheKind, Caches, RecentlyUsed
from lancelake.commit.snapshot import Snapshot
from lancelake.format import layout
from lancelake.format.index_meta import IndexMetadata
from lancelake.storage.instrumented import current_account
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

T = TypeVar("T")

# Overhead of a cached value.
_OVERHEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class _Weighed:
    value: object
    size: int


PARTS: CacheKind[tuple[str, Hashable], _Weighed] = CacheKind(
    name="indices", most_bytes=512 << 20, weight=lambda item: item.size
)


class CachedFile(NamedTuple):
    """A file or folder with parts that are cached, in the session of its root."""

    root: Location
    uri: str

    @property
    def parts(self) -> RecentlyUsed[tuple[str, Hashable], _Weighed]:
        """The cache."""
        return self.root.session.caches[PARTS]


def of(place: FileAt, part: object = "") -> CachedFile:
    """Return a file or folder, or a numbered part of one."""
    return CachedFile(place.root, f"{place.uri}/{part}" if part != "" else place.uri)


def of_table(snapshot: Snapshot) -> CachedFile:
    """Return the root of a table, for what is not of one file."""
    return CachedFile(snapshot.location, snapshot.location.uri)


def find(file: CachedFile, part: Hashable) -> object | None:
    """Return a cached part of a file."""
    item = file.parts.find((file.uri, part))
    _account((item,))
    return None if item is None else item.value


def find_all(file: CachedFile, parts: Sequence[Hashable]) -> list[object | None]:
    """Return cached parts of a file; None for those that are not cached."""
    items = file.parts.find_all([(file.uri, part) for part in parts])
    _account(items)
    return [None if item is None else item.value for item in items]


def _account(items: Sequence[_Weighed | None]) -> None:
    account = current_account()
    if account is not None:
        misses = sum(item is None for item in items)
        account.count("index_cache_misses", misses)
        account.count("index_cache_hits", len(items) - misses)


def count_loaded(parts: int) -> None:
    """Count parts of an index that a search reads, in the units of official releases.

    These are pages of a BTREE, sets of rows of a value, posting lists, and vector partitions, but
    not what the search of any part needs: headers, lookup tables, rows with nulls, or models.
    """
    account = current_account()
    if account is not None:
        account.count("index_parts_loaded", parts)


def keep(file: CachedFile, part: Hashable, value: object, size: int) -> None:
    """Cache a part of a file with its size in bytes."""
    file.parts.put((file.uri, part), _Weighed(value, size + _OVERHEAD_BYTES))


def kept(file: CachedFile, part: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
    """Return a part of a file; create it if it is not cached."""
    item = find(file, part)
    if item is not None:
        return cast(T, item)
    value = make()
    keep(file, part, value, size(value))
    return value


def size_below(roots: Iterable[str], caches: Caches) -> int:
    """Return the bytes of the cached files below any of some URIs."""
    prefixes = tuple(f"{root.rstrip('/')}/" for root in roots)
    return caches[PARTS].weight_of(lambda key: key[0].startswith(prefixes))


def segment_place(snapshot: Snapshot, entry: IndexMetadata) -> FileAt:
    """Return the folder of a segment.

    Official releases that compact a branch or a shallow clone write a segment again into it, but
    record that the files are still in the source.
    """
    recorded = snapshot.files.index_dir(entry)
    if entry.base_id is None:
        return recorded
    own = FileAt(root=snapshot.location, path=layout.index_dir(entry.uuid))

    def is_own() -> bool:
        return bool(list(own.store.list_names(own.path)))

    return own if kept(of(own), "has files", is_own, lambda _: 0) else recorded
