"""An object as one stream, read in pieces."""

from __future__ import annotations

import pytest

from lancelake.errors import ObjectNotFoundError
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectChunks, copy_across


def test_chunks_can_be_read_again() -> None:
    store = Location.parse("memory://chunks/again").store
    store.put("a", b"0123456789")
    chunks = ObjectChunks(store=store, path="a", chunk_bytes=4)
    assert list(chunks) == list(chunks) == [b"0123", b"4567", b"89"]


def test_copy_across_an_absent_object_is_not_found() -> None:
    store = Location.parse("memory://chunks/absent").store
    with pytest.raises(ObjectNotFoundError):
        copy_across(ObjectChunks(store=store, path="absent"), store, "b")
