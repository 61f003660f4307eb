"""Classification of store failures, without secrets in messages."""

from __future__ import annotations

import traceback

import pytest
from obstore.exceptions import GenericError, NotSupportedError

from lancelake.errors import (
    InvalidRequestError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
    UnsupportedError,
)
from lancelake.storage.store import ClientErrors, DiskErrors, from_client

SIGNED = (
    "Error performing GET https://acc.blob.core.windows.net/c/a?sv=1&sig=hush in 2ms - HTTP error"
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GenericError("kind: Timeout"), StorageUnavailableError),
        (GenericError("<Code>SlowDown</Code>"), StorageUnavailableError),
        (GenericError("non-2xx status code: 502 Bad Gateway"), StorageUnavailableError),
        (GenericError("non-2xx status code: 400 Bad Request"), StorageError),
        (GenericError("PUT http://169.254.169.254/latest/api/token"), StorageDeniedError),
        (NotSupportedError("no"), UnsupportedError),
        (ValueError("not a path"), InvalidRequestError),
        (PermissionError("no"), StorageDeniedError),
    ],
)
def test_failure_is_named(error: Exception, kind: type[Exception]) -> None:
    assert type(from_client(error, "a")) is kind


def test_signature_of_a_url_is_never_shown() -> None:
    with pytest.raises(StorageError) as caught, ClientErrors("a"):
        raise GenericError(SIGNED + f"\n\nDebug source:\n uri: Some(\n {SIGNED},\n )")
    shown = "".join(traceback.format_exception(caught.value))
    assert "acc.blob.core.windows.net/c/a" in shown
    assert "hush" not in shown


def test_wrong_region_is_an_error() -> None:
    error = from_client(GenericError("<Code>PermanentRedirect</Code>"), "a")
    assert "region" in str(error)


def test_message_is_kept_short() -> None:
    assert len(str(from_client(GenericError("x" * 10_000), "a"))) < 1000


def test_our_own_errors_pass() -> None:
    with pytest.raises(UnsupportedError), DiskErrors("a"):
        raise UnsupportedError("mine")
    with pytest.raises(StorageError, match="mine"), ClientErrors("a"):
        raise StorageError("mine")


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), ClientErrors("a"):
        raise KeyError("bug")
