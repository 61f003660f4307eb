"""Required Spark versions of tests."""

from __future__ import annotations

import pyspark
import pytest


def needs_spark(version: str, what: str) -> pytest.MarkDecorator:
    """Skip a test on a Spark that is older, which lacks something."""
    found, needed = (tuple(map(int, v.split(".")[:2])) for v in (pyspark.__version__, version))
    reason = f"Spark {pyspark.__version__} has no {what}"
    return pytest.mark.skipif(found < needed, reason=reason)
