"""The jar with the classes that Spark's settings name."""

from __future__ import annotations

from pathlib import Path


def jar() -> Path:
    """Return the path of the jar, for `spark.jars` or `spark.driver.extraClassPath`.

    Examples:
        >>> from lancelake.spark import jar
        >>> jar().name
        'lancelake-spark.jar'
    """
    return Path(__file__).parent / "lancelake-spark.jar"
