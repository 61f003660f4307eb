"""Storage options: the keys of official Lance, and their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lancelake.errors import InvalidRequestError
from lancelake.storage.retry import RetryPolicy
from lancelake.suggest import suggestion

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
