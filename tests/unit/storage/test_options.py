"""Storage options and their aliases."""

from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.storage.options import (
    AZURE,
    DEFAULT_RETRY,
    GCS,
    S3,
    ensure_known,
    is_true,
    retry_policy,
    settings,
)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("access_key_id", "aws_access_key_id"),
        ("aws_access_key_id", "aws_access_key_id"),
        ("AWS_ACCESS_KEY_ID", "aws_access_key_id"),
        ("region", "aws_region"),
        ("endpoint", "aws_endpoint"),
        ("endpoint_url", "aws_endpoint"),
        ("aws_endpoint_url", "aws_endpoint"),
        ("token", "aws_session_token"),
        ("aws_token", "aws_session_token"),
        ("virtual_hosted_style_request", "aws_virtual_hosted_style_request"),
        ("allow_http", "allow_http"),
        ("aws_allow_http", "allow_http"),
        ("timeout", "timeout"),
    ],
)
def test_s3_key_has_one_name(key: str, name: str) -> None:
    assert settings({key: "v"}, S3) == {name: "v"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("google_service_account", "google_service_account"),
        ("service_account_path", "google_service_account"),
        ("google_storage_token", "google_bearer_token"),
        ("application_credentials", "google_application_credentials"),
    ],
)
def test_gcs_key_has_one_name(key: str, name: str) -> None:
    assert settings({key: "v"}, GCS) == {name: "v"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("azure_storage_account_name", "account_name"),
        ("account_name", "account_name"),
        ("azure_storage_account_key", "account_key"),
        ("access_key", "account_key"),
        ("azure_tenant_id", "authority_id"),
        ("azure_storage_sas_token", "sas_key"),
        ("azure_client_id", "client_id"),
    ],
)
def test_azure_key_has_one_name(key: str, name: str) -> None:
    assert settings({key: "v"}, AZURE) == {name: "v"}


def test_two_names_of_one_key_become_one() -> None:
    assert len(settings({"region": "a", "aws_region": "b"}, S3)) == 1


def test_unknown_keys_are_passed_over() -> None:
    assert settings({"frob": "1", "aws_bucket": "b", "new_table_x": "y"}, S3) == {}


def test_retry_options_change_the_policy() -> None:
    policy = retry_policy({"client_max_retries": "0", "CLIENT_RETRY_TIMEOUT": "7"}, DEFAULT_RETRY)
    assert (policy.max_retries, policy.timeout_s) == (0, 7.0)


def test_absent_retry_options_keep_the_policy() -> None:
    assert retry_policy({"region": "x"}, DEFAULT_RETRY) == DEFAULT_RETRY


@pytest.mark.parametrize("text", ["", "-1", "many", "1.5"])
def test_retry_option_must_be_whole(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="client_max_retries"):
        retry_policy({"client_max_retries": text}, DEFAULT_RETRY)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("true", True), ("1", True), ("YES", True), ("false", False), (None, False)],
)
def test_truth_is_read(text: str | None, meaning: bool) -> None:
    assert is_true(text) is meaning


@pytest.mark.parametrize(
    "key",
    [
        "AWS_REGION",
        "region",
        "azure_storage_account_name",
        "account_key",
        "google_service_account",
        "request_timeout",
        "aws_allow_http",
        "client_max_retries",
        "ddbTableName",
        "download_retry_count",
    ],
)
def test_options_of_every_kind_of_store_are_known(key: str) -> None:
    ensure_known([key])


@pytest.mark.parametrize(
    ("key", "meant"),
    [("aws_regoin", "aws_region"), ("azure_storage_acount_name", "azure_storage_account_name")],
)
def test_a_misspelt_option_is_refused_with_a_proposal(key: str, meant: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"unknown storage option '{key}'.*{meant}"):
        ensure_known([key])


def test_an_option_like_no_other_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="unknown storage option"):
        ensure_known(["zzzzzzzzzzzz"])
