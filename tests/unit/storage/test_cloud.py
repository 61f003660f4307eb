"""Responses of cloud stores, from a scripted S3 server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lancelake.caches import Caches
from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LanceTableError,
    ObjectNotFoundError,
    RequestConflictError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
    UnsupportedError,
)
from lancelake.storage.location import Location, Session
from lancelake.storage.obstore_store import abilities, cloud_store
from lancelake.storage.store import ObjectStore
from tests.support.set_clock import ManualClock

CALLS: dict[str, Callable[[ObjectStore], object]] = {
    "get": lambda store: store.get("a"),
    "get_range": lambda store: store.get_range("a", start=0, length=1),
    "get_suffix": lambda store: store.get_suffix("a", length=1),
    "head": lambda store: store.head("a"),
    "exists": lambda store: store.exists("a"),
    "list": lambda store: list(store.list("a")),
    "list_names": lambda store: store.list_names("a"),
    "smallest_names": lambda store: store.smallest_names("a", limit=1),
    "put": lambda store: store.put("a", b"1"),
    "create": lambda store: store.create("a", b"1"),
    "copy": lambda store: store.copy("a", "b"),
    "delete_many": lambda store: store.delete_many(["a"]),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
DROP = 0


class Scripted(ThreadingHTTPServer):
    """Answers with the statuses it was given, one after the other, and then with the last."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = [200]
        # What reads are answered with; None for `statuses`.
        self.reads: int | None = None
        self.body = b""
        self.requests = 0

    def handle_error(self, *_: object) -> None:
        """Say nothing about clients that went away."""

    def store(self, **options: str) -> ObjectStore:
        given = {
            "endpoint": f"http://127.0.0.1:{self.server_port}",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "allow_http": "true",
            "disable_bulk_delete": "true",
            **options,
        }
        return Location.parse("s3://bucket/t", given, session=SESSION).store


SESSION = Session(clock=ManualClock())


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def answer(self) -> None:
        server = self.server
        self.rfile.read(int(self.headers.get("content-length", 0)))
        server.requests += 1
        if server.reads is not None and self.command in {"GET", "HEAD"}:
            status = server.reads
        else:
            status = server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0]
        if status == DROP:
            self.connection.close()
            return
        self.send_response(status)
        self.send_header("content-length", str(len(server.body)))
        self.send_header("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT")
        self.send_header("etag", '"tag"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(server.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # the server's names

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@each_call
@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_denied(
    call: Callable[[ObjectStore], object], status: int, server: Scripted
) -> None:
    server.statuses = [status]
    with pytest.raises(StorageDeniedError):
        call(server.store())
    assert server.requests == 1


@each_call
@pytest.mark.parametrize("status", [429, 500, 503, DROP])
def test_trouble_is_unavailable_and_never_absent(
    call: Callable[[ObjectStore], object], status: int, server: Scripted
) -> None:
    server.statuses = [status]
    with pytest.raises(StorageUnavailableError):
        call(server.store(client_max_retries="0"))


@each_call
def test_strange_answer_is_an_error(
    call: Callable[[ObjectStore], object], server: Scripted
) -> None:
    server.statuses = [418]
    with pytest.raises(StorageError) as caught:
        call(server.store())
    assert type(caught.value) is StorageError
    assert server.requests == 1


@pytest.mark.parametrize("call", ["get", "get_range", "get_suffix", "head", "copy"])
def test_absent_object_is_not_found(call: str, server: Scripted) -> None:
    server.statuses = [404]
    with pytest.raises(ObjectNotFoundError):
        CALLS[call](server.store())


def test_only_an_absent_object_does_not_exist(server: Scripted) -> None:
    server.statuses = [404]
    assert not server.store().exists("a")


def test_no_listener_is_unavailable() -> None:
    options = {"endpoint": "http://127.0.0.1:1", "skip_signature": "true", "allow_http": "true"}
    store = Location.parse("s3://bucket/t", options, session=SESSION).store
    with pytest.raises(StorageUnavailableError):
        store.get("a")


def test_slow_answer_is_unavailable(server: Scripted) -> None:
    release = threading.Event()
    server.statuses = [200]
    original = _Handler.answer
    _Handler.do_GET = lambda handler: (release.wait(10), original(handler))  # type: ignore[assignment]
    try:
        with pytest.raises(StorageUnavailableError):
            server.store(timeout="50ms", client_max_retries="0").get("a")
    finally:
        release.set()
        _Handler.do_GET = original


def test_call_is_made_again_until_it_succeeds(server: Scripted) -> None:
    server.statuses = [503, 500, 200]
    server.body = b"bytes"
    assert server.store().get("a") == b"bytes"
    assert server.requests == 3


def test_retries_are_not_multiplied(server: Scripted) -> None:
    server.statuses = [503]
    with pytest.raises(StorageUnavailableError):
        server.store(client_max_retries="3").get("a")
    assert server.requests == 4


def test_create_is_sent_once(server: Scripted) -> None:
    server.statuses = [503]
    with pytest.raises(StorageUnavailableError):
        server.store().create("a", b"1")
    assert server.requests == 1


def meaning(status: int) -> type[LanceTableError] | None:
    """Return the error that a conditional put raises for a status."""
    match status:
        case 200 | 201 | 202 | 204:
            return None
        case 304 | 412:
            return AlreadyExistsError
        case 409:
            return RequestConflictError
        case 404:
            return ObjectNotFoundError
        case 401 | 403:
            return StorageDeniedError
        case 405 | 501:
            return UnsupportedError
        case 408 | 425 | 429:
            return StorageUnavailableError
        case _:
            return StorageUnavailableError if status >= 500 else StorageError


STATUSES = (200, 201, 202, 204, *range(300, 600))


def failed(call: Callable[[], object]) -> type[Exception] | None:
    try:
        call()
    except LanceTableError as error:
        return type(error)
    return None


def test_every_status_of_a_create(server: Scripted) -> None:
    store = server.store()
    found = {}
    for status in STATUSES:
        server.statuses, server.reads = [status], 404
        found[status] = failed(lambda: store.create("a", b"1"))
    assert found == {status: meaning(status) for status in STATUSES}


def test_every_status_of_a_swap(server: Scripted) -> None:
    store = server.store()
    server.body = b"0"
    found = {}
    for status in STATUSES:
        server.statuses, server.reads = [status], 200
        found[status] = failed(lambda: store.swap("a", b"1", expected=b"0"))
    # The condition did not hold, or the object is gone: another writer was first.
    lost = {412: None, 404: None, 304: AlreadyExistsError}
    assert found == {status: lost.get(status, meaning(status)) for status in STATUSES}


def test_a_create_that_conflicts_with_another_request_is_tried_again(server: Scripted) -> None:
    server.statuses, server.reads = [409, 409, 200], 404
    server.store().create("a", b"1")


def test_a_swap_that_conflicts_with_another_request_is_tried_again(server: Scripted) -> None:
    server.statuses, server.reads, server.body = [409, 409, 200], 200, b"0"
    assert server.store().swap("a", b"1", expected=b"0")


def test_a_conflict_at_a_path_that_exists_is_not_tried_again(server: Scripted) -> None:
    server.statuses, server.reads = [409], 200
    with pytest.raises(AlreadyExistsError):
        server.store().create("a", b"1")
    assert server.requests == 2


def test_a_plain_put_that_conflicts_with_another_request_is_tried_again(server: Scripted) -> None:
    server.statuses = [409, 200]
    server.store().put("a", b"1")


def test_store_without_conditional_put_cannot_create(server: Scripted) -> None:
    server.statuses = [501]
    with pytest.raises(UnsupportedError):
        server.store().create("a", b"1")


def test_conditional_put_that_is_switched_off_cannot_create(server: Scripted) -> None:
    with pytest.raises(UnsupportedError):
        server.store(conditional_put="disabled").create("a", b"1")


def test_missing_bucket_is_no_absent_object(server: Scripted) -> None:
    server.statuses = [404]
    server.body = b"<Error><Code>NoSuchBucket</Code></Error>"
    with pytest.raises(StorageError, match="bucket"):
        server.store().get("a")


def test_plain_http_must_be_allowed() -> None:
    options = {"endpoint": "http://127.0.0.1:1", "skip_signature": "true"}
    with pytest.raises(StorageError, match="allow_http"):
        Location.parse("s3://bucket/t", options).store.get("a")


def test_half_a_key_is_refused_without_showing_it() -> None:
    location = Location.parse("s3://bucket/t", {"secret_access_key": "hush"})
    with pytest.raises(InvalidRequestError, match="storage options") as caught:
        assert location.store
    assert "hush" not in str(caught.value)


def test_missing_machine_credentials_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    options = {"metadata_endpoint": "http://127.0.0.1:1/169.254.169.254"}
    store = Location.parse("s3://bucket/t", options, session=SESSION).store
    with pytest.raises(StorageDeniedError, match="credentials"):
        store.get("a")


def test_clients_are_shared(server: Scripted) -> None:
    server.body = b"1"
    one, two = server.store(), server.store()
    assert one._inner._client is two._inner._client  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("uri", "options", "in_order", "suffixes"),
    [
        ("s3://b/t", {}, True, True),
        ("s3://b--use1-az4--x-s3/t", {}, False, True),
        ("s3://b/t", {"s3_express": "true"}, False, True),
        ("gs://b/t", {}, True, True),
        ("az://c/t", {}, True, False),
    ],
)
def test_abilities(uri: str, options: dict[str, str], in_order: bool, suffixes: bool) -> None:
    found = abilities(Location.parse(uri, options))
    assert (found.lists_in_order, found.reads_suffixes) == (in_order, suffixes)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("gs://b/t", {"google_skip_signature": "true"}),
        ("gs://b/t", {"google_storage_token": "token"}),
        ("az://c/t", {"account_name": "acc", "account_key": "a2V5"}),
        (
            "az://c/t",
            {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "azure_storage_sas_token": "sv=1&sig=2"},
        ),
        ("abfss://c@acc.dfs.core.windows.net/t", {"azure_skip_signature": "true"}),
        ("abfss://c@acc.dfs.fabric.microsoft.com/t", {"azure_skip_signature": "true"}),
        ("s3+ddb://b/t?ddbTableName=x", {"skip_signature": "true"}),
        ("s3://b--use1-az4--x-s3/t", {"skip_signature": "true"}),
    ],
)
def test_client_can_be_made(uri: str, options: dict[str, str]) -> None:
    assert Location.parse(uri, options).store


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:1", "http://[::1", "http:// bad host/", "nonsense", "http://", "\n", ""]
)
@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_endpoint_that_is_no_url_is_refused(scheme: str, endpoint: str) -> None:
    options = {"endpoint": endpoint, "allow_http": "true", "account_name": "a", "region": "r"}
    with pytest.raises(InvalidRequestError, match="is not a URL"):
        cloud_store(Location.parse(f"{scheme}://bucket/t", options), Caches())


@pytest.mark.parametrize(
    "endpoint", ["https://s3.example.com", "http://127.0.0.1:9000/x", "http://[::1]:9000"]
)
def test_endpoint_that_is_a_url_is_taken(endpoint: str) -> None:
    cloud_store(Location.parse("s3://bucket/t", {"endpoint": endpoint, "region": "r"}), Caches())


def test_panic_of_the_client_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "nonsense")
    options = {"region": "r", "access_key_id": "a", "secret_access_key": "b", "allow_http": "true"}
    with pytest.raises(InvalidRequestError, match="the store's client failed"):
        cloud_store(Location.parse("s3://bucket/t", options), Caches()).get("x")
