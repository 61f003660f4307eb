"""Credentials and region of the user's AWS profile."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from lancelake.errors import InvalidRequestError

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
    found: dict[str, str] = {}
    if needs_key and _KEYS[0] in profile and _KEYS[1] in profile:
        found.update({key: profile[key] for key in _KEYS if key in profile})
    if needs_region and "region" in profile:
        found["aws_region"] = profile["region"]
    return found


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
    except OSError:
        # Most machines have no such file, and some do not allow reading it.
        return {}
    except (configparser.Error, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{path} is not an AWS settings file", path=str(path)) from error
    return dict(parser[name]) if parser.has_section(name) else {}
