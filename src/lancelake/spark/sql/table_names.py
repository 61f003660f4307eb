"""Resolve table names in registered catalogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from lancelake.core.values.metadata import Location, quoted_name
from lancelake.errors import InvalidRequestError, TableNotFoundError, suggestion
from lancelake.spark.jars import CATALOG_CLASS, CATALOGS, SESSION_CATALOG, SESSION_CLASS
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.fitted_rows import CASE_SENSITIVE, ensure_distinct, matched_names
from lancelake.spark.jvm.catalyst import catalog_settings
from lancelake.spark.jvm.gateway import Gateway, is_classic, needs_classic, open_gateway
from lancelake.spark.jvm.session_tables import SessionRegistry
from lancelake.spark.sql.warehouse import Directory, Named, SessionDirectory, is_path
from lancelake.spark.values.options import ROOT, TableOptions, location_at, split_storage
from lancelake.spark.values.spark_types import arrow_schema, nullable_schema


def default_root(gateway: Gateway, name: str) -> str:
    """Return the root folder that the settings of a session give a catalog."""
    warehouse = gateway.conf("spark.sql.warehouse.dir", "spark-warehouse")
    return gateway.conf(f"{CATALOGS}{name}.root", gateway.conf(ROOT, warehouse))


def directory_of(
    gateway: Gateway, name: str, settings: Mapping[str, str] | None = None
) -> Directory:
    """Return the tables of a catalog, by its settings, which may have options of the store."""
    settings = catalog_settings(gateway) if settings is None else settings
    prefix = f"{CATALOGS}{name}."
    own = {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
    storage, _ = split_storage(own)
    return Directory(root=location_at(default_root(gateway, name), storage))


def session_directory(gateway: Gateway) -> SessionDirectory:
    """Return the Lance tables of the session catalog."""
    root = directory_of(gateway, SESSION_CATALOG).root
    return SessionDirectory(root=root, registry=SessionRegistry(gateway))


def widen_table(spark: SparkSession, parts: Sequence[str], rows: t.StructType) -> bool:
    """Add the columns of rows to a table of Lance; return whether it had not all of them."""
    name = ".".join(quoted_name(part) for part in parts)
    if full_name(spark, name) is None:
        return False
    try:
        table = table_named(spark, name).open()
    except TableNotFoundError:
        return False
    own = table.snapshot.manifest.schema.names
    names = matched_names(rows.fieldNames(), own, case_sensitive=_is_exact(spark))
    ensure_distinct(names, own)
    renamed = [
        t.StructField(name, field.dataType, field.nullable, field.metadata)
        for name, field in zip(names, rows.fields, strict=True)
    ]
    data = arrow_schema(nullable_schema(t.StructType(renamed)))
    widened = table.columns.widen(data, engine=SparkEngine(spark), casts=True)
    return bool(widened.version != table.snapshot.version)


def table_named(spark: SparkSession, name: str, default: str | None = None) -> TableOptions:
    """Return a table, or a branch of one, by its SQL name or its path.

    A name without a catalog is resolved in `default`, or in the current catalog. In the current
    catalog, a name without a namespace belongs to the current namespace.
    """
    if not is_classic(spark):
        raise needs_classic("a catalog of Lance tables")
    here = _registered(spark)
    if is_path(name) and "`" not in name:
        owner = here.get(default or spark.catalog.currentCatalog())
        place = Location.parse(name) if owner is None else owner.table((), name)
        return TableOptions(location=place, rest={})
    parts = _parts(spark, name)
    if len(parts) > 1 and parts[0] in here:
        return _place(here[parts[0]], parts[1:], name, is_exact=_is_exact(spark))
    home = here.get(default or spark.catalog.currentCatalog())
    if home is None:
        raise InvalidRequestError(
            f"{name} does not belong to a catalog of Lance tables",
            action=f"Catalogs of this session: {', '.join(sorted(here)) or 'none'}.",
        )
    if len(parts) == 1 and default in (None, spark.catalog.currentCatalog()):
        parts = [*_current_namespace(spark), *parts]
    return _place(home, parts, name, is_exact=_is_exact(spark))


def full_name(spark: SparkSession, name: str) -> list[str] | None:
    """Return a name with its catalog and namespace, if it belongs to a registered catalog.

    In the session catalog, this is a Lance table that exists.
    """
    here, parts = _registered(spark), _parts(spark, name)
    if len(parts) == 1 or parts[0] not in here:
        current = spark.catalog.currentCatalog()
        parts = [current, *(_current_namespace(spark) if len(parts) == 1 else []), *parts]
    owner = here.get(parts[0])
    is_ours = owner is not None and owner.owns(tuple(parts[1:-1]), parts[-1])
    return parts if is_ours else None


def path_name(spark: SparkSession, path: str) -> list[str] | None:
    """Return the name of the table at a path in a catalog; None if there is no such table."""
    for name, directory in _registered(spark).items():
        if name != SESSION_CATALOG and is_path(path):
            return [name, path] if directory.has_table(directory.table((), path)) else None
    return None


def procedures_of(spark: SparkSession, catalog: str) -> str:
    """Return the catalog whose procedures take tables of a catalog."""
    others = [name for name in _registered(spark) if name != SESSION_CATALOG]
    return others[0] if catalog == SESSION_CATALOG and others else catalog


def _place(directory: Directory, parts: list[str], name: str, *, is_exact: bool) -> TableOptions:
    own = directory.spell(tuple(parts[:-1]), parts[-1], is_exact=is_exact)
    if not directory.owns(*own):
        problem = f"{name} is not a Lance table of {SESSION_CATALOG}"
        raise TableNotFoundError(problem, action="Name the catalog, as in lance.db.t.")
    named = directory.resolve(*own)
    if not directory.has_table(named.location):
        raise TableNotFoundError(
            f"table {name} does not exist",
            table=named.location.uri,
            action=suggestion(parts[-1], directory.tables(tuple(parts[:-1])), "tables"),
        )
    return _options(named, name)


def _options(named: Named, name: str) -> TableOptions:
    if named.tag is not None or named.facts is not None:
        problem = f"{name} is neither a table nor a branch"
        raise InvalidRequestError(
            problem, action="Use the name of the table, or of a branch of it."
        )
    rest = {} if named.branch is None else {"branch": named.branch}
    return TableOptions(location=named.location, rest=rest)


def _registered(spark: SparkSession) -> dict[str, Directory]:
    """Return the catalogs of a session by their names."""
    gateway = open_gateway(spark)
    settings = catalog_settings(gateway)
    catalogs: dict[str, Directory] = {}
    for key, value in settings.items():
        name = key.removeprefix(CATALOGS)
        if value == CATALOG_CLASS and "." not in name:
            catalogs[name] = directory_of(gateway, name, settings)
        elif value == SESSION_CLASS and name == SESSION_CATALOG:
            catalogs[name] = session_directory(gateway)
    return catalogs


def _is_exact(spark: SparkSession) -> bool:
    return str(spark.conf.get(CASE_SENSITIVE, "false")).lower() == "true"


def _parts(spark: SparkSession, name: str) -> list[str]:
    parser = spark._jsparkSession.sessionState().sqlParser()
    parts = parser.parseMultipartIdentifier(name)
    return [str(parts.apply(position)) for position in range(parts.length())]


def _current_namespace(spark: SparkSession) -> list[str]:
    manager = spark._jsparkSession.sessionState().catalogManager()
    return [str(part) for part in manager.currentNamespace()]
