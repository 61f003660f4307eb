"""Settings of a session: the caller's, the launcher's, or ours."""

from __future__ import annotations

import pytest

from lancelake.spark.registration.sessions import settings

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
    assert settings({}, {}, has_package=True)[DAEMON] == "lancelake.spark.worker.daemon"
    assert settings({DAEMON: "mine"}, {}, has_package=True)[DAEMON] == "mine"
