"""Options of stores, time limits and retries."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from lancelake import log
from lancelake.clock import Clock, Ids
from lancelake.errors import (
    InvalidRequestError,
    RequestConflictError,
    StorageUnavailableError,
    suggestion,
)
from lancelake.storage.store import ObjectInfo, ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to retry after `StorageUnavailableError`."""

    max_retries: int = 5
    timeout_s: float = 180.0
    first_delay_s: float = 0.2
    max_delay_s: float = 15.0

    def delay_s(self, attempt: int, chance: float) -> float:
        """Return the wait before retry `attempt` (from 0): exponential, 50 to 100 % of it."""
        full = min(self.max_delay_s, self.first_delay_s * 2.0 ** min(attempt, 32))
        return full * (0.5 + chance / 2)


DEFAULT_RETRY = RetryPolicy()


class RetryingStore:
    """Retries every idempotent call; `create` and `swap` only if the store did nothing."""

    __slots__ = ("_clock", "_ids", "_inner", "_lists_in_order", "_policy")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        policy: RetryPolicy,
        clock: Clock,
        ids: Ids,
        lists_in_order: bool,
    ) -> None:
        """Wrap a store that does not retry."""
        self._inner = inner
        self._lists_in_order = lists_in_order
        self._policy = policy
        self._clock = clock
        self._ids = ids

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        return self._tried(lambda: self._inner.get(path))

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        return self._tried(lambda: self._inner.get_range(path, start=start, length=length))

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        return self._tried(lambda: self._inner.get_suffix(path, length=length))

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        return self._tried(lambda: self._inner.head(path))

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        return self._tried(lambda: self._inner.exists(path))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder, each once, also after a retry."""
        last = ""
        attempts = _Attempts(self._policy, self._clock, self._ids)
        while True:
            try:
                for info in self._inner.list(prefix):
                    if not last or not self._lists_in_order or info.path > last:
                        last = info.path
                        yield info
                return
            except StorageUnavailableError as error:
                if last and not self._lists_in_order:
                    raise
                attempts.wait_after(error)

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        return self._tried(lambda: self._inner.list_names(directory))

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        return self._tried(lambda: self._inner.list_dirs(directory))

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first names of a folder in ascending order, if the store lists in order."""
        return self._tried(lambda: self._inner.smallest_names(directory, limit=limit))

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other."""
        self._tried(lambda: self._inner.put(path, data, durable=durable))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        self._tried(lambda: self._inner.put_stream(path, chunks))

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free; not retried when a lost reply may hide success."""
        self._tried(lambda: self._inner.create(path, data), after=RequestConflictError)

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`; not retried, as `create`."""
        return self._tried(
            lambda: self._inner.swap(path, data, expected=expected), after=RequestConflictError
        )

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        self._tried(lambda: self._inner.copy(source, target))

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._tried(lambda: self._inner.delete(path))

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist."""
        every = tuple(paths)
        self._tried(lambda: self._inner.delete_many(every))

    def _tried(
        self,
        call: Callable[[], T],
        after: type[StorageUnavailableError] = StorageUnavailableError,
    ) -> T:
        attempts = _Attempts(self._policy, self._clock, self._ids)
        while True:
            try:
                return call()
            except after as error:
                attempts.wait_after(error)


class _Attempts:
    """Failures of one call."""

    __slots__ = ("_clock", "_deadline_s", "_ids", "_policy", "_retries")

    def __init__(self, policy: RetryPolicy, clock: Clock, ids: Ids) -> None:
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._deadline_s = clock.monotonic_s() + policy.timeout_s
        self._retries = 0

    def wait_after(self, error: StorageUnavailableError) -> None:
        """Wait for the next attempt, or raise the error when there is none left."""
        delay_s = self._policy.delay_s(self._retries, self._ids.random())
        out_of_time = self._clock.monotonic_s() + delay_s > self._deadline_s
        if self._retries >= self._policy.max_retries or out_of_time:
            raise error
        self._retries += 1
        log.report_retry(log.STORAGE, error, delay_s, retry=self._retries)
        self._clock.sleep(delay_s)


_TRUE = {"1", "true", "on", "yes", "y"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The option keys of one kind of store, each with an optional prefix."""

    prefixes: tuple[str, ...]
    canonical_prefix: str
    keys: frozenset[str]
    aliases: Mapping[str, str]


CLIENT_KEYS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_max_frame_size",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "timeout",
        "user_agent",
    }
)

S3 = Vocabulary(
    prefixes=("aws_",),
    canonical_prefix="aws_",
    keys=frozenset(
        {
            "access_key_id",
            "checksum_algorithm",
            "conditional_put",
            "container_authorization_token_file",
            "container_credentials_full_uri",
            "container_credentials_relative_uri",
            "copy_if_not_exists",
            "default_region",
            "disable_bulk_delete",
            "disable_tagging",
            "endpoint",
            "endpoint_url_s3",
            "endpoint_url_sts",
            "imdsv1_fallback",
            "metadata_endpoint",
            "region",
            "request_payer",
            "role_arn",
            "role_session_name",
            "s3_express",
            "secret_access_key",
            "server_side_encryption",
            "session_token",
            "skip_signature",
            "sse_bucket_key_enabled",
            "sse_customer_key_base64",
            "sse_kms_key_id",
            "unsigned_payload",
            "virtual_hosted_style_request",
            "web_identity_token_file",
        }
    ),
    aliases={
        "endpoint_url": "endpoint",
        "sts_endpoint": "endpoint_url_sts",
        "token": "session_token",
    },
)

GCS = Vocabulary(
    prefixes=("google_",),
    canonical_prefix="google_",
    keys=frozenset(
        {
            "application_credentials",
            "base_url",
            "bearer_token",
            "service_account",
            "service_account_key",
            "skip_signature",
        }
    ),
    aliases={"service_account_path": "service_account", "storage_token": "bearer_token"},
)

AZURE = Vocabulary(
    prefixes=("azure_storage_", "azure_"),
    canonical_prefix="",
    keys=frozenset(
        {
            "account_key",
            "account_name",
            "authority_host",
            "authority_id",
            "bearer_token",
            "client_id",
            "client_secret",
            "disable_tagging",
            "endpoint",
            "fabric_cluster_identifier",
            "fabric_session_token",
            "fabric_token_service_url",
            "fabric_workload_host",
            "federated_token_file",
            "msi_endpoint",
            "msi_resource_id",
            "object_id",
            "sas_key",
            "skip_signature",
            "use_azure_cli",
            "use_emulator",
            "use_fabric_endpoint",
        }
    ),
    aliases={
        "access_key": "account_key",
        "identity_endpoint": "msi_endpoint",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "tenant_id": "authority_id",
        "token": "bearer_token",
    },
)


STORES = (S3, GCS, AZURE)

# Options that are not client settings: retries, options of the codec, and the DynamoDB table of
# `s3+ddb` with its endpoint.
_OTHER_KEYS = frozenset(
    {
        "client_max_retries",
        "client_retry_timeout",
        "ddbtablename",
        "download_retry_count",
        "dynamodb_endpoint",
        "expires_at_millis",
        "refresh_offset_millis",
    }
)
_CLIENT_ALIASES = {"request_timeout": "timeout"}


def is_known(key: str) -> bool:
    """Whether any kind of store has an option."""
    name = key.lower()
    return name in _OTHER_KEYS or any(_canonical(name, store) is not None for store in STORES)


def ensure_known(keys: Iterable[str]) -> None:
    """Raise for an option that no kind of store has, and suggest another.

    Options of other kinds of stores are accepted: a table may have files in several stores.
    """
    for key in keys:
        if is_known(key):
            continue
        names = {_spelling(store, name) for store in STORES for name in store.keys}
        advice = suggestion(key, sorted(names | CLIENT_KEYS | _OTHER_KEYS), "storage options")
        raise InvalidRequestError(f"unknown storage option {key!r}", option=key, action=advice)


def settings(options: Mapping[str, str], vocabulary: Vocabulary) -> dict[str, str]:
    """Return the options of this kind of store under their canonical names.

    Others are for another kind of store, or are not client settings.
    """
    known: dict[str, str] = {}
    for key, value in options.items():
        if (name := _canonical(key.lower(), vocabulary)) is not None:
            known[name] = value
    return known


def retry_policy(options: Mapping[str, str], default: RetryPolicy) -> RetryPolicy:
    """Apply `client_max_retries` and `client_retry_timeout` (seconds) to a policy."""
    lowered = {key.lower(): value for key, value in options.items()}
    policy = default
    if (text := lowered.get("client_max_retries")) is not None:
        policy = replace(policy, max_retries=_whole("client_max_retries", text))
    if (text := lowered.get("client_retry_timeout")) is not None:
        policy = replace(policy, timeout_s=float(_whole("client_retry_timeout", text)))
    return policy


def is_true(text: str | None) -> bool:
    """Parse a boolean option; None means false."""
    return text is not None and text.strip().lower() in _TRUE


def _canonical(key: str, vocabulary: Vocabulary) -> str | None:
    """Return the canonical name of an option; None if this kind of store does not have it."""
    name = _without_prefix(key, vocabulary.prefixes)
    name = vocabulary.aliases.get(name, name)
    if name in vocabulary.keys:
        return vocabulary.canonical_prefix + name
    name = _CLIENT_ALIASES.get(name, name)
    return name if name in CLIENT_KEYS else None


def _spelling(vocabulary: Vocabulary, name: str) -> str:
    """Return the preferred spelling of an option."""
    return vocabulary.prefixes[0] + name


def _without_prefix(key: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key


def _whole(key: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidRequestError(f"storage option {key!r} must be a whole number", option=key)
    return int(text)
