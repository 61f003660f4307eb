"""The jar with the classes that Spark's settings name, and these settings."""

from __future__ import annotations

from pathlib import Path

CATALOGS = "spark.sql.catalog."
SESSION_CATALOG = "spark_catalog"
CATALOG_CLASS = "lancelake.LanceCatalog"
SESSION_CLASS = "lancelake.LanceSessionCatalog"
JARS, EXTENSIONS = "spark.jars", "spark.sql.extensions"
DRIVER_CLASS_PATH = "spark.driver.extraClassPath"


def jar() -> Path:
    """Return the path of the jar, for `spark.jars` or `spark.driver.extraClassPath`.

    Examples:
        >>> from lancelake.spark import jar
        >>> jar().name
        'lancelake-spark.jar'
    """
    return Path(__file__).parent / "lancelake-spark.jar"


def connector_settings(catalog: str = "lance") -> dict[str, str]:
    """Return the settings that give a session Lance tables."""
    return {
        JARS: str(jar()),
        EXTENSIONS: "lancelake.LanceExtensions",
        f"{CATALOGS}{catalog}": CATALOG_CLASS,
        f"{CATALOGS}{SESSION_CATALOG}": SESSION_CLASS,
    }
