"""Files that the codec cannot reach are copied to disk once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancelake.data.codec import official
from lancelake.errors import ObjectNotFoundError
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

ROOT = Location.parse("memory://spool-test/t")


def place(name: str, data: bytes | None = None) -> FileAt:
    if data is not None:
        ROOT.store.put(name, data)
    return FileAt(root=ROOT, path=name)


def test_copy_has_the_bytes() -> None:
    assert Path(official.local_copy(place("data/a", b"abc"))).read_bytes() == b"abc"


def test_file_is_copied_once() -> None:
    source = place("data/b", b"first")
    path = official.local_copy(source)
    ROOT.store.delete("data/b")
    assert official.local_copy(source) == path


def test_files_of_other_places_have_other_copies() -> None:
    paths = {official.local_copy(place(name, name.encode())) for name in ("data/c", "data/d")}
    assert {Path(path).read_bytes() for path in paths} == {b"data/c", b"data/d"}


def test_missing_file_leaves_no_copy() -> None:
    with pytest.raises(ObjectNotFoundError):
        official.local_copy(place("data/nosuch"))
    assert not official.spooled_path(place("data/nosuch").uri).exists()


def test_copies_made_at_once_are_whole() -> None:
    source = place("data/large", b"x" * (3 << 20))
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: official.local_copy(source), range(16)))
    (path,) = paths
    assert Path(path).stat().st_size == 3 << 20


def test_copies_are_in_a_folder_of_this_process() -> None:
    assert official.spooled_path("x").parent == official.folder()
