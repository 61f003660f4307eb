"""Differences between two versions: columns, fragments, indices, refs, features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.schema import Field, Schema
from lancelake.table.history import version_rows
from lancelake.table.open import branch_location, list_branches, list_tags

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[T]):
    """An item before and after; None where it does not exist."""

    name: str
    before: T | None
    after: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A field of the schema without its children."""

    id: int
    path: str
    type: str
    nullable: bool
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentFacts:
    """Contents of a fragment; counts are None if the manifest does not record them."""

    rows: int | None
    deleted_rows: int | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """The segments of an index."""

    segments: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefsBetween:
    """Tags that refer to a version, and branches forked from it."""

    tags: tuple[str, ...]
    branches: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All differences; unchanged items are not listed.

    The refs are those of each of the versions, and do not count as differences.
    """

    refs: Pair[RefsBetween]
    rows: Pair[int]
    columns: tuple[Pair[ColumnFacts], ...]
    config: tuple[Pair[str], ...]
    table_metadata: tuple[Pair[str], ...]
    schema_metadata: tuple[Pair[str], ...]
    features: tuple[Pair[str], ...]
    base_paths: tuple[Pair[str], ...]
    fragments: tuple[Pair[FragmentFacts], ...]
    indices: tuple[Pair[IndexFacts], ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        lists = (self.columns, self.config, self.table_metadata, self.schema_metadata)
        more = (self.features, self.base_paths, self.fragments, self.indices)
        return self.rows.before == self.rows.after and not any(lists) and not any(more)


def diff(before: Snapshot, after: Snapshot) -> Diff:
    """Compare two versions, which need not be consecutive, by their manifests."""
    old, new = before.manifest, after.manifest
    return Diff(
        refs=Pair(name="refs", before=_refs(before), after=_refs(after)),
        rows=Pair(name="rows", before=version_rows(before), after=version_rows(after)),
        columns=column_changes(old.schema, new.schema),
        config=_pairs(old.config, new.config),
        table_metadata=_pairs(old.table_metadata, new.table_metadata),
        schema_metadata=_pairs(_texts(old.schema.metadata), _texts(new.schema.metadata)),
        features=_pairs(_features(before), _features(after)),
        base_paths=_pairs(_bases(before), _bases(after)),
        fragments=_fragments(before, after),
        indices=_pairs(_indices(before), _indices(after)),
    )


def _pairs(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[Pair[T], ...]:
    """Pair the items that differ, in name order."""
    names = sorted({*old, *new})
    pairs = (Pair(name=n, before=old.get(n), after=new.get(n)) for n in names)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def column_changes(old: Schema, new: Schema) -> tuple[Pair[ColumnFacts], ...]:
    """Pair columns by id, so that a renamed column counts as changed."""
    before, after = _by_id(old), _by_id(new)
    pairs = (
        Pair(name=(after.get(i) or before[i]).path, before=before.get(i), after=after.get(i))
        for i in sorted({*before, *after})
    )
    return tuple(pair for pair in pairs if pair.before != pair.after)


def _by_id(schema: Schema) -> dict[int, ColumnFacts]:
    return {field.id: _column(schema, field) for field in schema.walk()}


def _column(schema: Schema, field: Field) -> ColumnFacts:
    return ColumnFacts(
        id=field.id,
        path=schema.path_of(field.id) or field.name,
        type=field.logical_type,
        nullable=field.nullable,
        metadata=_texts(field.metadata),
    )


def _fragments(before: Snapshot, after: Snapshot) -> tuple[Pair[FragmentFacts], ...]:
    """Pair fragments by id; fragments without a common file are different ones with the same id."""
    earlier = FragmentList.of(before.manifest.fragments)
    later = FragmentList.of(after.manifest.fragments)
    # Entries that are identical in both versions are not decoded.
    old = {f.id: f for f in earlier.changed_since(later)}
    new = {f.id: f for f in later.changed_since(earlier)}
    pairs: list[Pair[FragmentFacts]] = []
    for number in sorted({*old, *new}):
        was, became = (_version_facts(f) for f in (old.get(number), new.get(number)))
        if was == became:
            continue
        if was and became and set(was.files).isdisjoint(became.files):
            pairs.append(Pair(name=str(number), before=was, after=None))
            pairs.append(Pair(name=str(number), before=None, after=became))
        else:
            pairs.append(Pair(name=str(number), before=was, after=became))
    return tuple(pairs)


def _version_facts(fragment: Fragment | None) -> FragmentFacts | None:
    if fragment is None:
        return None
    return FragmentFacts(
        rows=fragment.live_rows,
        deleted_rows=fragment.num_deleted_rows,
        files=tuple(file.path for file in fragment.files),
    )


def _indices(snapshot: Snapshot) -> dict[str, IndexFacts]:
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.indices:
        by_name.setdefault(index.name, []).append(index)
    schema = snapshot.manifest.schema
    return {
        name: IndexFacts(
            segments=tuple(sorted(str(s.uuid) for s in segments)),
            columns=tuple(schema.path_of(i) or str(i) for i in segments[0].fields),
        )
        for name, segments in by_name.items()
    }


def _refs(snapshot: Snapshot) -> RefsBetween:
    main = snapshot.main_location
    line = branch_location(main, snapshot.branch)
    tags = {n: (t.branch, t.version) for n, t in list_tags(main).items()}
    forks = {n: (b.parent_branch, b.parent_version) for n, b in list_branches(main).items()}

    def here(places: Mapping[str, tuple[str | None, int]]) -> tuple[str, ...]:
        return tuple(
            name
            for name, (branch, version) in places.items()
            if version == snapshot.version and branch_location(main, branch) == line
        )

    return RefsBetween(tags=here(tags), branches=here(forks))


def _features(snapshot: Snapshot) -> dict[str, str]:
    manifest = snapshot.manifest
    return {
        "data_file_version": manifest.data_version.value,
        "reader_flags": str(manifest.reader_feature_flags),
        "stable_row_ids": "yes" if manifest.has_stable_row_ids else "no",
        "writer_flags": str(manifest.writer_feature_flags),
    }


def _bases(snapshot: Snapshot) -> dict[str, str]:
    return {str(base.id): base.path for base in snapshot.manifest.base_paths}


def _texts(metadata: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode(errors="replace") for key, value in metadata.items()}
