"""Transaction files are read as they were written."""

from __future__ import annotations

from lancelake.commit.handler import taken_apart
from lancelake.commit.loop import commit
from lancelake.commit.snapshot import rewrite_transaction_file
from lancelake.format import layout
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.format.manifest import decode_manifest, encode_manifest
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import line_on, means, request, seed, set_config

NAME = taken_apart(manifest_name(2, ManifestNaming.V2))


def _table() -> tuple[DictStore, str]:
    """Return a table of two versions, and the file with the transaction of the second."""
    store = DictStore()
    seed(store)
    commit(line_on(store), request(set_config("k", "v"), unique=2), means(store))
    file = line_on(store).load(NAME).manifest.transaction_file
    assert file
    return store, layout.transaction(file)


def test_the_file_is_written_from_the_copy_in_the_manifest() -> None:
    store, path = _table()
    before = store.get(path)
    store.delete(path)
    rewrite_transaction_file(line_on(store), NAME)
    assert store.get(path) == before


def test_nothing_is_written_without_a_copy() -> None:
    store, path = _table()
    store.delete(path)
    file = decode_manifest(store.get(layout.manifest(NAME.name)))
    store.put(layout.manifest(NAME.name), encode_manifest(file.manifest))
    rewrite_transaction_file(line_on(store), NAME)
    assert not store.exists(path)
