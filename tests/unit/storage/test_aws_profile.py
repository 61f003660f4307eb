"""The AWS profile has the lowest precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.storage.obstore_store import profile_settings

KEY = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
CREDENTIALS = """
[default]
aws_access_key_id = id
aws_secret_access_key = secret

[work]
aws_access_key_id = work-id
aws_secret_access_key = 100%secret
aws_session_token = token
"""
CONFIG = """
[default]
region = eu-central-1

[profile work]
region = us-west-2
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment that knows nothing but its home."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(CREDENTIALS)
    (folder / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def test_default_profile_is_used(home: dict[str, str]) -> None:
    assert profile_settings({}, home) == {**KEY, "aws_region": "eu-central-1"}


def test_named_profile_is_used(home: dict[str, str]) -> None:
    assert profile_settings({}, {**home, "AWS_PROFILE": "work"}) == {
        "aws_access_key_id": "work-id",
        "aws_secret_access_key": "100%secret",
        "aws_session_token": "token",
        "aws_region": "us-west-2",
    }


def test_files_may_be_elsewhere(home: dict[str, str]) -> None:
    folder = Path(home["HOME"]) / ".aws"
    environment = {
        "HOME": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_CONFIG_FILE": str(folder / "config"),
    }
    assert profile_settings({}, environment) == {**KEY, "aws_region": "eu-central-1"}


@pytest.mark.parametrize("option", ["aws_access_key_id", "aws_skip_signature"])
def test_key_of_the_options_wins(option: str, home: dict[str, str]) -> None:
    assert profile_settings({option: "x"}, home) == {"aws_region": "eu-central-1"}


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_key_of_the_environment_wins(name: str, home: dict[str, str]) -> None:
    assert profile_settings({}, {**home, name: "x"}) == {"aws_region": "eu-central-1"}


def test_region_of_the_environment_wins(home: dict[str, str]) -> None:
    assert profile_settings({}, {**home, "AWS_DEFAULT_REGION": "x"}) == KEY


def test_unknown_profile_says_nothing(home: dict[str, str]) -> None:
    assert profile_settings({}, {**home, "AWS_PROFILE": "other"}) == {}


def test_no_files_say_nothing(tmp_path: Path) -> None:
    assert profile_settings({}, {"HOME": str(tmp_path)}) == {}


def test_broken_file_is_named(home: dict[str, str]) -> None:
    (Path(home["HOME"]) / ".aws/config").write_text("no section = 1")
    with pytest.raises(InvalidRequestError, match="config"):
        profile_settings({}, home)
