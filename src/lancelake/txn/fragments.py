"""Changes of fragment lists: numbering, replacing and removing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import TOMBSTONE, FieldId, FragmentId
from lancelake.format.manifest import Manifest

MAX_FRAGMENT_ID = FragmentId((1 << 32) - 1)


def ensure_id(fragment_id: int) -> FragmentId:
    """Return a valid fragment id; raise if there are none left."""
    if fragment_id > MAX_FRAGMENT_ID:
        raise InvalidRequestError(
            f"the table has no fragment ids left: the highest is {MAX_FRAGMENT_ID}",
            action="Write its rows to another table.",
        )
    return FragmentId(fragment_id)


def next_id(manifest: Manifest) -> int:
    """Return the first fragment id that was never used."""
    return 0 if manifest.max_fragment_id is None else manifest.max_fragment_id + 1


def numbered(fragments: Iterable[Fragment], first: int) -> tuple[Fragment, ...]:
    """Give ids to the fragments that have none (0); other ids are kept."""
    numbered: list[Fragment] = []
    for fragment in fragments:
        if fragment.id == 0:
            numbered.append(replace(fragment, id=ensure_id(first)))
            first += 1
        else:
            numbered.append(fragment)
    return tuple(numbered)


def renumbered(fragments: Iterable[Fragment], first: int) -> tuple[Fragment, ...]:
    """Give consecutive ids to all fragments."""
    return tuple(replace(f, id=ensure_id(first + n)) for n, f in enumerate(fragments))


def without_dead_files(fragment: Fragment) -> Fragment:
    """Remove the files whose columns were all replaced."""
    if not any(TOMBSTONE in f.fields for f in fragment.files):
        return fragment
    files = tuple(f for f in fragment.files if any(i != TOMBSTONE for i in f.fields))
    return replace(fragment, files=files)


def without_dropped_files(fragment: Fragment, fields: Collection[FieldId]) -> Fragment:
    """Remove the files that have no column of the schema."""
    files = tuple(f for f in fragment.files if any(i in fields for i in f.fields))
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)


def on_current_files(
    updated: Iterable[Fragment], head: Mapping[FragmentId, Fragment], fields: Collection[FieldId]
) -> tuple[Fragment, ...]:
    """Remove files from mine that were dropped with their columns."""
    return tuple(_on_current_files(f, head.get(f.id), fields) for f in updated)


def ensure_known(ids: Iterable[FragmentId], existing: Collection[FragmentId], *, what: str) -> None:
    """Raise for a fragment that the table does not have."""
    for each in ids:
        if each not in existing:
            msg = f"{what} refers to fragment {each}, which the table does not have"
            raise InvalidRequestError(msg, fragment=each)


def _on_current_files(
    fragment: Fragment, current: Fragment | None, fields: Collection[FieldId]
) -> Fragment:
    paths = set() if current is None else {f.path for f in current.files}
    files = tuple(
        f for f in fragment.files if f.path in paths or any(i in fields for i in f.fields)
    )
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)
