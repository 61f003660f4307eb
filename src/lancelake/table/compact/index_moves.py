"""Fragment reuse index: a record of old and new row addresses for indices."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import load_deletions
from lancelake.format import layout, roaring_treemap
from lancelake.format.fragment import Fragment
from lancelake.format.ids import Version
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexFile, IndexMetadata
from lancelake.format.operations.rewrite import RewriteGroup
from lancelake.index.recorded_moves import TYPE_URL, Moves
from lancelake.index.recorded_moves import recorded_moves as earlier_moves
from lancelake.scan.count import live_rows, physical_rows
from lancelake.storage.open import open_store
from lancelake.table.publish import Surroundings

_DETAILS_FILE = "details.binpb"
_MOST_INLINE_BYTES = 204_800
_FILES_AT_ONCE = 16


def recorded_moves(
    base: Snapshot, groups: Sequence[RewriteGroup], version: int, surroundings: Surroundings
) -> IndexMetadata:
    """Return the index entry that maps the addresses of old rows to those of new ones.

    The rows of each group must have kept their order. `version` is a version before the moves.
    Earlier records are included.
    """
    details = earlier_moves(base) or Moves()
    added = details.inline.versions.add(dataset_version=version)
    added.groups.extend(group_moves(base, groups))
    covered = BitMap(
        f.id for v in details.inline.versions for g in v.groups for f in g.new_fragments
    )
    entry = IndexMetadata(
        uuid=surroundings.ids.uuid4(),
        name=FRAGMENT_REUSE,
        fields=(),
        dataset_version=Version(version),
        fragment_bitmap=bytes(covered.serialize()),
        details=IndexDetails(type_url=TYPE_URL, value=details.SerializeToString()),
        index_version=0,
        created_at_ms=surroundings.clock.now_ns() // 1_000_000,
    )
    size_bytes = len(details.inline.SerializeToString())
    return entry if size_bytes <= _MOST_INLINE_BYTES else _outside(base, entry, details)


def group_moves(base: Snapshot, groups: Sequence[RewriteGroup]) -> list[Moves.Group]:
    """Return the moves of the rows of groups; rows must have kept their order."""
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        return list(pool.map(lambda group: _group(base, group), groups))


def _outside(base: Snapshot, entry: IndexMetadata, details: Moves) -> IndexMetadata:
    """Store the record in a file, to keep the manifest small."""
    data = details.inline.SerializeToString()
    path = f"{layout.index_dir(entry.uuid)}/{_DETAILS_FILE}"
    open_store(base.location).create(path, data)
    place = Moves()
    place.external.path, place.external.offset, place.external.size = _DETAILS_FILE, 0, len(data)
    return replace(
        entry,
        details=IndexDetails(type_url=TYPE_URL, value=place.SerializeToString()),
        files=(IndexFile(path=_DETAILS_FILE, size_bytes=len(data)),),
    )


def _group(base: Snapshot, group: RewriteGroup) -> Moves.Group:
    return Moves.Group(
        changed_row_addrs=_addresses(base, group.old_fragments),
        old_fragments=[_digest(base, f) for f in group.old_fragments],
        new_fragments=[_digest(base, f) for f in group.new_fragments],
    )


def _digest(base: Snapshot, fragment: Fragment) -> Moves.FragmentDigest:
    places = base.files, base.manifest_at, fragment
    rows = physical_rows(*places)
    return Moves.FragmentDigest(
        id=fragment.id, physical_rows=rows, num_deleted_rows=rows - live_rows(*places)
    )


def _addresses(base: Snapshot, fragments: Sequence[Fragment]) -> bytes:
    """Encode the addresses of live rows as a Roaring treemap: one bitmap per fragment."""
    live: dict[int, BitMap] = {}
    for fragment in fragments:
        rows = physical_rows(base.files, base.manifest_at, fragment)
        live[fragment.id] = BitMap(range(rows)) - load_deletions(base.files, fragment)
        live[fragment.id].run_optimize()
    return roaring_treemap.encode(live)
