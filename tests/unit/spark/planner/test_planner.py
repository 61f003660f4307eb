"""The process that plans refuses a jar that may ask for something else."""

from __future__ import annotations

import pytest

from lancelake.errors import UnsupportedError
from lancelake.spark.planner.process import ensure_same_release
from lancelake.version import __version__


def test_a_jar_of_the_same_release_is_accepted() -> None:
    ensure_same_release(__version__)


@pytest.mark.parametrize("release", ["0.0.9", "None"])
def test_a_jar_of_another_release_is_refused(release: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the jar is of lancelake {release}") as caught:
        ensure_same_release(release)
    assert "lancelake spark-conf" in str(caught.value)
