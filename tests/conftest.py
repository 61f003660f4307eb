"""Fixtures for tables and official releases, and Hypothesis profiles."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from tests.support.clean_root import CleanRoot
from tests.support.late_workers import run_until_workers_connect
from tests.support.official import RELEASES, Official, OfficialPool, is_installed

ROOT = CleanRoot(Path(__file__).parents[1])
# Every JVM that a test starts reads its defaults there, those of subprocesses too.
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "support/spark_conf"))
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
# Hypothesis also draws constants of the project's modules that are imported so far. Which ones are
# depends on the tests that ran before in the same process, so that a failure could not be repeated.
assert hasattr(providers, "is_local_module_file")
providers.is_local_module_file = lambda path: False
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    print_blob=True,
    suppress_health_check=SLOW,
)
settings.register_profile(
    "deep", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=SLOW
)
# Reports the first failure as it was drawn: quick, for the first look at many failures.
settings.register_profile(
    "first",
    settings.get_profile("ci"),
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def tmp_table(tmp_path: Path) -> str:
    """Return a path where no table exists yet."""
    return str(tmp_path / "table.lance")


@pytest.fixture(scope="session")
def officials() -> Iterator[OfficialPool]:
    """Return the factory of official releases: one worker per release and test process."""
    pool = OfficialPool()
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def official_4(officials: OfficialPool) -> Official:
    """Return official Lance 4.0.2."""
    return _installed(officials, "4.0.2")


@pytest.fixture(scope="session")
def official_14(officials: OfficialPool) -> Official:
    """Return official Lance 14.0.2."""
    return _installed(officials, "14.0.2")


@pytest.fixture(scope="session", params=RELEASES, ids=lambda release: f"official-{release}")
def official(officials: OfficialPool, request: pytest.FixtureRequest) -> Official:
    """Return each pinned official release in turn."""
    return _installed(officials, request.param)


def _installed(officials: OfficialPool, release: str) -> Official:
    if not is_installed(release):
        pytest.skip(f"official release {release} is not installed under .interop/")
    return officials(release)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run tests of Spark again if Spark gave up waiting for a Python worker."""
    if not {"spark", "spark_faults"} & set(item.path.parts):
        return None
    return run_until_workers_connect(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """Undo what later tests of the process would see, and look for files that were left."""
    yield
    # A type of the codec.
    with contextlib.suppress(pa.ArrowKeyError):
        pa.unregister_extension_type("lance.bfloat16")
    left = ROOT.left()
    assert not left, (
        f"{', '.join(left)} appeared in the repository's root during this test or one beside it: "
        "tests write to tmp_path"
    )
