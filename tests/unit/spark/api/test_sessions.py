"""Settings of a session: the caller's, the launcher's, or ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lancelake.errors import UnsupportedError
from lancelake.spark.api.session import ensure_java, public_settings, settings

DAEMON = "spark.python.daemon.module"
LAUNCHED = {
    "spark.master": "spark://there:7077",
    "spark.app.name": "nightly",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.executor.memory": "8g",
}


@pytest.mark.parametrize(
    ("given", "launched", "expected"),
    [
        ({}, {}, ("local[*]", "lancelake")),
        ({}, {"spark.app.name": "pyspark-shell"}, ("local[*]", "lancelake")),
        ({}, LAUNCHED, ("spark://there:7077", "nightly")),
        ({"spark.master": "local[2]"}, LAUNCHED, ("local[2]", "nightly")),
        ({"spark.app.name": "mine"}, LAUNCHED, ("spark://there:7077", "mine")),
    ],
)
def test_the_launcher_stands_between_the_caller_and_us(
    given: dict[str, str], launched: dict[str, str], expected: tuple[str, str]
) -> None:
    found = settings(given, launched, has_package=True)
    assert (found["spark.master"], found["spark.app.name"]) == expected


def test_settings_of_the_launcher_are_kept() -> None:
    key = "spark.sql.execution.arrow.pyspark.enabled"
    assert settings({}, LAUNCHED, has_package=True)[key] == "false"
    assert settings({key: "true"}, LAUNCHED, has_package=True)[key] == "true"
    assert settings({}, {}, has_package=True)[key] == "true"


def test_workers_start_without_this_package_unless_all_have_it() -> None:
    assert DAEMON not in settings({}, LAUNCHED, has_package=False)
    assert settings({}, {}, has_package=True)[DAEMON] == "lancelake.spark.tasks.daemon"
    assert settings({DAEMON: "mine"}, {}, has_package=True)[DAEMON] == "mine"


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.catalog.lance.aws_secret_access_key",
        "spark.sql.catalog.lance.aws_access_key_id",
        "spark.sql.catalog.lance.storage.aws_session_token",
        "spark.sql.catalog.lance.azure_storage_account_key",
        "spark.sql.catalog.lance.azure_storage_sas_key",
        "spark.sql.catalog.lance.aws_sse_customer_key_base64",
        "spark.hadoop.fs.s3a.access.key",
        "spark.ssl.keyPassword",
    ],
)
def test_secrets_are_not_on_the_command_line_and_spark_does_not_show_them(key: str) -> None:
    given = {key: "hidden", "spark.driver.memory": "1g", "spark.ssl.keyStore": "path"}
    assert public_settings(given) == {"spark.driver.memory": "1g", "spark.ssl.keyStore": "path"}
    assert re.search(settings(given, {}, has_package=True)["spark.redaction.regex"], key)


def test_passwords_in_urls_are_not_on_the_command_line() -> None:
    packages = {"spark.jars.repositories": "https://me:hidden@host/maven"}
    given = {"spark.hadoop.proxy": "http://me:hidden@host:80", **packages}
    assert public_settings(given) == packages


def java_at(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "java").touch(mode=0o755)


def test_java_home_is_enough(tmp_path: Path) -> None:
    java_at(tmp_path / "bin")
    ensure_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_java_on_the_path_is_enough(tmp_path: Path) -> None:
    java_at(tmp_path / "tools")
    ensure_java({"PATH": str(tmp_path / "tools")})


def test_no_java_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Install Java 17"):
        ensure_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="JAVA_HOME is"):
        ensure_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
