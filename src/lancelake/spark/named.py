"""Where does a table of a registered catalog lie?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from lancelake.errors import InvalidRequestError, TableNotFoundError
from lancelake.spark.directory import is_path
from lancelake.spark.jvm.door import is_classic, needs_classic
from lancelake.storage.location import Location

if TYPE_CHECKING:  # catalogs have procedures that name tables
    from lancelake.spark.planning.catalog import LanceCatalog

_CATALOGS: dict[tuple[int, str], LanceCatalog] = {}


def remember(spark: SparkSession, name: str, catalog: LanceCatalog) -> None:
    """Note a catalog that a session has."""
    _CATALOGS[id(spark._jvm), name] = catalog


def is_ours(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether a name is that of a table in a registered catalog."""
    here = {name for jvm, name in _CATALOGS if jvm == id(spark._jvm)}
    return (len(parts) > 1 and parts[0] in here) or spark.catalog.currentCatalog() in here


def location_of(spark: SparkSession, name: str, default: str | None = None) -> Location:
    """Return the place of a table by its name in SQL, or by its path.

    A name that does not begin with a catalog is one of `default`, or of the current catalog.
    """
    if not is_classic(spark):
        raise needs_classic("a catalog of Lance tables")
    if is_path(name) and "`" not in name:
        return Location.parse(name)
    parts = _parts(spark, name)
    here = {key: found for (jvm, key), found in _CATALOGS.items() if jvm == id(spark._jvm)}
    if len(parts) > 1 and parts[0] in here:
        return _place(here[parts[0]], parts[1:], name)
    home = here.get(default or spark.catalog.currentCatalog())
    if home is None:
        raise InvalidRequestError(
            f"{name} does not name a catalog of Lance tables",
            action=f"Catalogs of this session: {', '.join(sorted(here)) or 'none'}.",
        )
    if len(parts) == 1 and default is None:
        parts = [*_current_namespace(spark), *parts]
    return _place(home, parts, name)


def _place(catalog: LanceCatalog, parts: list[str], name: str) -> Location:
    location = catalog.directory.resolve(tuple(parts[:-1]), parts[-1]).location
    if not catalog.directory.has_table(location):
        raise TableNotFoundError(f"there is no table {name}", table=location.uri)
    return location


def _parts(spark: SparkSession, name: str) -> list[str]:
    parser = spark._jsparkSession.sessionState().sqlParser()
    found = parser.parseMultipartIdentifier(name)
    return [str(found.apply(position)) for position in range(found.length())]


def _current_namespace(spark: SparkSession) -> list[str]:
    manager = spark._jsparkSession.sessionState().catalogManager()
    return [str(part) for part in manager.currentNamespace()]
