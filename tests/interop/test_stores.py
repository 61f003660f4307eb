"""The same table on disk, in memory and on S3, and store failures."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

import lancelake.pylance as lance
from lancelake.errors import (
    CorruptTableError,
    StorageDeniedError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancelake.pylance import LanceDataset
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.storage.location import Location
from tests.support.compare import assert_same_table
from tests.support.read_tables import varied, versioned
from tests.support.s3_server import S3Server, s3_server

Open = Callable[..., LanceDataset]
STORES = ("memory", "s3")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two tables."""
    root = tmp_path_factory.mktemp("stores")
    varied(root / "varied.lance", stable_row_ids=True)
    versioned(root / "versioned.lance")
    return root


@pytest.fixture(scope="module")
def bucket(s3: S3Server, folder: Path) -> Location:
    """Return a place on S3 with the same tables."""
    return uploaded(folder, f"s3://{s3.new_bucket()}/some tables", s3.storage_options)


@pytest.fixture(scope="module")
def memory(folder: Path) -> Location:
    """Return a place in memory with the same tables."""
    return uploaded(folder, "shared-memory://store-tests/tables", {})


def uploaded(folder: Path, uri: str, options: dict[str, str]) -> Location:
    place = Location.parse(uri, options)
    store = place.store
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(folder)), path.read_bytes())
    return place


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, folder: Path) -> Open:
    """Return a function that opens a table in a store; branches refer to files in the folder."""
    name = "memory" if request.param == "memory" else "bucket"
    place: Location = request.getfixturevalue(name)

    def opened(table: str, version: Any = None) -> LanceDataset:
        uri = f"{place.uri}/{table}.lance"
        options = place.storage_options
        return lance.dataset(uri, version, storage_options=options, confine_to=[folder])

    return opened


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter": "st.x > 10 AND n IS NOT NULL"},
        {"filter": "key % 5 = 0", "late_materialization": True, "columns": ["text", "z"]},
        {"columns": ["key", "_rowid", "_rowaddr", "_row_created_at_version"]},
        {"limit": 9, "offset": 5, "batch_size": 2},
        {"order_by": ["a", "key"]},
        {"columns": {"twice": "n * 2"}},
    ],
    ids=str,
)
def test_scan_gives_the_same_rows(opened: Open, folder: Path, options: dict[str, Any]) -> None:
    local = lance.dataset(folder / "varied.lance")
    assert_same_table(opened("varied").to_table(**options), local.to_table(**options))


def test_take_gives_the_same_rows(opened: Open, folder: Path) -> None:
    asked = [26, 0, 13, 13, 22]
    local = lance.dataset(folder / "varied.lance").take(asked)
    assert_same_table(opened("varied").take(asked), local)


def test_rows_are_counted_alike(opened: Open) -> None:
    found = opened("varied")
    assert (found.count_rows(), found.count_rows("key < 10")) == (27, 7)


@pytest.mark.parametrize("version", [None, 1, 3, "first", "aside", ("feat/x", None), ("feat/x", 2)])
def test_every_version_is_the_same(opened: Open, folder: Path, version: Any) -> None:
    local = lance.dataset(folder / "versioned.lance", version)
    found = opened("versioned", version)
    assert found.version == local.version
    assert_same_table(found.to_table(), local.to_table())


def test_versions_tags_and_branches_are_the_same(opened: Open, folder: Path) -> None:
    local, found = lance.dataset(folder / "versioned.lance"), opened("versioned")
    assert found.versions() == local.versions()
    assert found.tags.list() == local.tags.list()
    assert found.branches.list() == local.branches.list()
    assert found.latest_version == 4


def test_table_survives_pickling(opened: Open) -> None:
    found = opened("varied", 1)
    assert_same_table(pickle.loads(pickle.dumps(found)).to_table(), found.to_table())


def test_missing_version_is_an_error(opened: Open) -> None:
    with pytest.raises(VersionNotFoundError, match="the latest is 4"):
        opened("versioned", 99)


def test_location_without_a_table_is_an_error(opened: Open) -> None:
    with pytest.raises(TableNotFoundError, match=r"nosuch\.lance was not found"):
        opened("nosuch")


@pytest.mark.parametrize("name", STORES)
def test_missing_data_file_is_named(
    request: pytest.FixtureRequest, s3: S3Server, folder: Path, name: str
) -> None:
    uri = (
        "shared-memory://store-tests/damaged"
        if name == "memory"
        else f"s3://{s3.new_bucket()}/damaged"
    )
    options = {} if name == "memory" else s3.storage_options
    place = uploaded(folder / "versioned.lance", uri, options)
    found = lance.dataset(place.uri, storage_options=options)
    gone = found.get_fragment(1).data_files()[0].path
    place.store.delete(f"data/{gone}")
    with pytest.raises(CorruptTableError, match=gone) as caught:
        found.to_table()
    assert (caught.value.table, caught.value.version) == (place.uri, 4)


def test_missing_bucket_is_an_error(s3: S3Server) -> None:
    with pytest.raises(StorageError, match="no-such-bucket"):
        lance.dataset("s3://no-such-bucket/t", storage_options=s3.storage_options)


def test_wrong_scheme_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown scheme 'ftp'"):
        lance.dataset("ftp://host/t")


class Denying:
    """Answers every request with 403."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        code, text = "InvalidAccessKeyId", "The key does not exist"
        body = f"<Error><Code>{code}</Code><Message>{text}</Message></Error>"
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body.encode()]


@pytest.fixture
def denying() -> Iterator[str]:
    """Run a server that refuses all credentials."""

    class Silent(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            pass

    server = make_server("127.0.0.1", 0, Denying(), threaded=True, request_handler=Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("version", [None, 1, "tag", ("branch", None)])
def test_wrong_credentials_are_an_error(s3: S3Server, denying: str, version: Any) -> None:
    options = {**s3.storage_options, "aws_endpoint": denying}
    with pytest.raises(StorageDeniedError) as caught:
        lance.dataset("s3://bucket/t.lance", version, storage_options=options)
    assert isinstance(caught.value, PermissionError)


def test_credentials_that_expire_while_reading_are_an_error(bucket: Location, denying: str) -> None:
    found = lance.dataset(f"{bucket.uri}/varied.lance", storage_options=bucket.storage_options)
    options = {**bucket.storage_options, "aws_endpoint": denying}
    place = Location.parse(found.uri, options)
    # The same version, reached with credentials that no longer hold.
    late = replace(found._snapshot, location=place)
    with pytest.raises(StorageDeniedError):
        run(plan(late, ScanRequest())).read_all()


def test_secrets_do_not_show(s3: S3Server, bucket: Location) -> None:
    found = lance.dataset(f"{bucket.uri}/varied.lance", storage_options=bucket.storage_options)
    secret = s3.storage_options["aws_secret_access_key"]
    assert secret not in repr(found)
    assert secret not in repr(found._snapshot)
    with pytest.raises(VersionNotFoundError) as caught:
        found.checkout_version(99)
    assert secret not in str(caught.value)


def test_shared_memory_tables_of_one_name_are_shared_within_the_process(memory: Location) -> None:
    again = lance.dataset(f"{memory.uri}/varied.lance")
    assert isinstance(again.to_table(), pa.Table)
