"""Clients of S3, Google Cloud Storage and Azure."""

from __future__ import annotations

import functools
import os
import re

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store
from obstore.store import ObjectStore as Client

from lancelake.errors import InternalError, InvalidRequestError
from lancelake.storage.aws_profile import profile_settings
from lancelake.storage.failures import shown, without_secrets
from lancelake.storage.location import Location
from lancelake.storage.obstore_store import Abilities, ObstoreStore
from lancelake.storage.options import AZURE, GCS, S3, is_true, settings

_ENVIRONMENT = ("AWS_", "AZURE_", "GOOGLE_", "SERVICE_ACCOUNT")
_EXPRESS_BUCKET = "--x-s3"
_URL_OPTIONS = ("endpoint", "endpoint_url_s3", "endpoint_url_sts", "base_url")
_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?(?:/\S*)?")
_FABRIC = ".fabric.microsoft.com"

Pairs = tuple[tuple[str, str], ...]


def cloud_store(location: Location) -> ObstoreStore:
    """Return the store at a cloud location; clients and their connections are shared.

    Options override the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), which overrides a profile.
    """
    client = _client(location.scheme, location.authority, _settings(location), _environment())
    return ObstoreStore(client, prefix=location.key, abilities=abilities(location))


def abilities(location: Location) -> Abilities:
    """Return the capabilities of the store at a location."""
    match location.scheme:
        case "s3" | "s3+ddb":
            options = settings(location.storage_options, S3)
            return Abilities(lists_in_order=not _is_express(location.authority, options))
        case "az" | "abfss":
            return Abilities(reads_suffixes=False)
        case _:
            return Abilities()


def _settings(location: Location) -> Pairs:
    options = location.storage_options
    match location.scheme:
        case "s3" | "s3+ddb":
            config = settings(options, S3)
            config = {**profile_settings(config, os.environ), **config}
        case "gs":
            config = settings(options, GCS)
        case _:
            config = settings(options, AZURE)
    return tuple(config.items())


@functools.lru_cache(maxsize=64)
def _client(scheme: str, authority: str, pairs: Pairs, environment: Pairs) -> Client:
    del environment  # obstore reads the environment itself; a change needs another client
    config = dict(pairs)
    _ensure_urls(config)
    try:
        match scheme:
            case "s3" | "s3+ddb":
                return _s3(authority, config)
            case "gs":
                return _gcs(authority, config)
            case "az" | "abfss":
                return _azure(authority, config)
            case _:
                raise InternalError(f"no client for the scheme {scheme!r}")
    except (BaseError, ValueError) as error:
        raise InvalidRequestError(
            f"{scheme}://{authority} cannot be reached with these options: {shown(str(error))}",
            action="Check the storage options and the environment.",
        ) from without_secrets(error)


def _ensure_urls(config: dict[str, str]) -> None:
    """Raise for an endpoint that is not a URL: the client would panic."""
    for key, value in config.items():
        if key.endswith(_URL_OPTIONS) and _URL.fullmatch(value) is None:
            raise InvalidRequestError(
                f"storage option {key!r} is not a URL: {_masked_url(value)}",
                option=key,
                action="Write it as https://host:port.",
            )


def _masked_url(value: str) -> str:
    """Return a URL without parts that may be secret."""
    return repr(value.partition("?")[0].rpartition("@")[2])


# RetryingStore retries, so the clients do not.
def _s3(bucket: str, config: dict[str, str]) -> S3Store:
    if _is_express(bucket, config):
        config = {**config, "aws_s3_express": "true"}
    return S3Store(bucket, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # its keys are written with a prefix


def _gcs(bucket: str, config: dict[str, str]) -> GCSStore:
    # Supported by Lance, unknown to obstore.
    if (token := os.environ.get("GOOGLE_STORAGE_TOKEN")) is not None:
        config = {"google_bearer_token": token, **config}
    return GCSStore(bucket, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # its keys are written with a prefix


def _azure(authority: str, config: dict[str, str]) -> AzureStore:
    container, _, host = authority.partition("@")
    if host:
        config = {**config, "account_name": host.partition(".")[0]}
        if host.endswith(_FABRIC):
            config["use_fabric_endpoint"] = "true"
    return AzureStore(container, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # a plain dict of its keys


def _is_express(bucket: str, config: dict[str, str]) -> bool:
    chosen = config.get("aws_s3_express", os.environ.get("AWS_S3_EXPRESS"))
    return bucket.endswith(_EXPRESS_BUCKET) or is_true(chosen)


def _environment() -> Pairs:
    return tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith(_ENVIRONMENT)))
