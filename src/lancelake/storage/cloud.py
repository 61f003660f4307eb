"""Object stores of clouds, and the credentials of AWS profiles."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store
from obstore.store import ObjectStore as Client

from lancelake.caches import CacheKind, Caches
from lancelake.errors import InternalError, InvalidRequestError
from lancelake.interrupts import pass_on
from lancelake.storage.obstore_store import Abilities, ObstoreStore
from lancelake.storage.options import AZURE, GCS, S3, is_true, settings
from lancelake.storage.store import StorePlace, shown, without_secrets

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# Options that choose how requests are signed.
_SIGNERS = (
    "aws_access_key_id",
    "aws_skip_signature",
    "aws_web_identity_token_file",
    "aws_container_credentials_relative_uri",
    "aws_container_credentials_full_uri",
)
_REGIONS = ("aws_region", "aws_default_region")


def profile_settings(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the key and region of the profile, unless options or environment set them.

    Only keys in the profile's files are used; profiles that need a login are ignored.
    """
    said = {*given, *(name.lower() for name in environment)}
    needs_key = not said.intersection(_SIGNERS)
    needs_region = not said.intersection(_REGIONS)
    if not needs_key and not needs_region:
        return {}
    profile = _profile(environment)
    credentials: dict[str, str] = {}
    if needs_key and _KEYS[0] in profile and _KEYS[1] in profile:
        credentials.update({key: profile[key] for key in _KEYS if key in profile})
    if needs_region and "region" in profile:
        credentials["aws_region"] = profile["region"]
    return credentials


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    name = environment.get("AWS_PROFILE", "default")
    folder = Path(environment.get("HOME", "/")) / ".aws"
    config = environment.get("AWS_CONFIG_FILE", folder / "config")
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE", folder / "credentials")
    section = name if name == "default" else f"profile {name}"
    return {**_section(Path(config), section), **_section(Path(credentials), name)}


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, default_section="", strict=False)
    try:
        parser.read_string(path.read_text("utf-8"))
    except OSError as error:
        pass_on(error)
        # Most machines have no such file, and some do not allow reading it.
        return {}
    except (configparser.Error, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{path} is not an AWS settings file", path=str(path)) from error
    return dict(parser[name]) if parser.has_section(name) else {}


_ENVIRONMENT = ("AWS_", "AZURE_", "GOOGLE_", "SERVICE_ACCOUNT")
_EXPRESS_BUCKET = "--x-s3"
_URL_OPTIONS = ("endpoint", "endpoint_url_s3", "endpoint_url_sts", "base_url")
_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?(?:/\S*)?")
_FABRIC = ".fabric.microsoft.com"

Pairs = tuple[tuple[str, str], ...]


_Client = tuple[str, str, Pairs, Pairs]
_CLIENTS: CacheKind[_Client, Client] = CacheKind(
    name="clients", most_bytes=4 << 20, weight=lambda _: 64 << 10, most_values=64
)


def cloud_store(location: StorePlace, caches: Caches) -> ObstoreStore:
    """Return the store at a cloud location; clients and their connections are shared.

    Options override the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), which overrides a profile.
    """
    # The client reads the environment itself; after a change another one is needed.
    key = location.scheme, location.authority, _settings(location), _environment()
    client = caches[_CLIENTS].get(key, lambda: _open_client(*key[:3]))
    return ObstoreStore(client, prefix=location.key, abilities=abilities(location))


def abilities(location: StorePlace) -> Abilities:
    """Return the capabilities of the store at a location."""
    match location.scheme:
        case "s3" | "s3+ddb":
            options = settings(location.storage_options, S3)
            return Abilities(lists_in_order=not _is_express(location.authority, options))
        case "az" | "abfss":
            return Abilities(reads_suffixes=False)
        case _:
            return Abilities()


def _settings(location: StorePlace) -> Pairs:
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


def _open_client(scheme: str, authority: str, pairs: Pairs) -> Client:
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
    setting = config.get("aws_s3_express", os.environ.get("AWS_S3_EXPRESS"))
    return bucket.endswith(_EXPRESS_BUCKET) or is_true(setting)


def _environment() -> Pairs:
    return tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith(_ENVIRONMENT)))
