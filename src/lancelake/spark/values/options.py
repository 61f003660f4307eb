"""Options and properties of tables in Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Location, Snapshot, is_known
from lancelake.core.values.versions import (
    AsOf,
    AtTag,
    AtVersion,
    Latest,
    OnBranch,
    Reference,
    time_reference,
)
from lancelake.errors import InvalidRequestError, UnsupportedError, suggestion

Expression = Column | str


def as_column(expression: Expression) -> Column:
    """Return an expression as a column; raise for a value of another type."""
    if isinstance(expression, str):
        return f.expr(expression)
    # Callers are not type-checked: a dict may be passed in the place of a condition.
    given: object = expression
    if not isinstance(given, Column):
        problem = f"{given!r} is not an expression: SQL text or a Column is needed"
        raise InvalidRequestError(problem, found=type(given).__name__)
    return expression


PATH = "path"
_SEVERAL = "paths"
"""Option in which Spark passes the paths of `load([a, b])`."""

CONFINE_TO = "confineTo"
ROOT = "spark.lancelake.root"
"""Setting: the folder of the tables of a catalog."""

USE_INDEX = "useScalarIndex"
SCAN_OPTIONS = ("batchRows", "maxPartitionBytes", USE_INDEX)
READ_OPTIONS = ("version", "tag", "branch", "timestamp", *SCAN_OPTIONS)
WRITE_OPTIONS = (
    "branch",
    "dataStorageVersion",
    "invalidUtf8",
    "maxBytesPerFile",
    "maxRowsPerFile",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "stableRowIds",
    "txnAppId",
    "txnVersion",
    "userMetadata",
)
_ALIASES = {"versionasof": "version", "timestampasof": "timestamp"}
"""Options of other table formats, by the option of ours."""

_STORAGE_PREFIX = "storage."
_PREFIXES = ("aws_", "azure_", "google_", "gcs_", "gcp_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Parsed options: the location of the table, and the others by lower-case name."""

    location: Location
    rest: Mapping[str, str]

    @staticmethod
    def of(location: Location, given: Mapping[str, str], allowed: Collection[str]) -> TableOptions:
        """Check the options of a read or write of a table that was already resolved.

        A table resolved by name is confined by its catalog, not by an option.
        """
        storage, rest = split_storage({key.lower(): value for key, value in given.items()})
        rest.pop(PATH, None)
        if CONFINE_TO.lower() in storage and location.confine_to is None:
            raise InvalidRequestError(
                f"option {CONFINE_TO} is not supported for a table that is resolved by name",
                table=location.uri,
                action=f"Set spark.sql.catalog.<name>.{CONFINE_TO}, or load the table by its path.",
            )
        ensure_known(rest, allowed, location.uri)
        return TableOptions(location=location, rest=rest)

    @property
    def place(self) -> TablePlace:
        """The place of the table, which may not exist."""
        return TablePlace(self.location)

    def open(self, at: Reference | None = None) -> Table:
        """Open a version on the branch of the options, by default the one that they select."""
        return open_on(self.location, self.get("branch"), reference(self) if at is None else at)

    def open_existing(self) -> Table | None:
        """Open the newest version; None if there is no table."""
        return self.place.open_existing(self.get("branch"))

    def get(self, name: str) -> str | None:
        """Return an option by case-insensitive name."""
        return self.rest.get(name.lower())

    def whole(self, name: str) -> int | None:
        """Return an integer option."""
        text = self.get(name)
        if text is None:
            return None
        if not text.strip().isdecimal():
            raise self._invalid(f"option {name} must be an integer, not {text!r}", name)
        return int(text)

    def positive(self, name: str) -> int | None:
        """Return a positive integer option."""
        value = self.whole(name)
        if value == 0:
            raise self._invalid(f"option {name} must be at least 1", name)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean option."""
        text = (self.get(name) or str(default)).strip().lower()
        if text not in ("true", "false"):
            raise self._invalid(f"option {name} must be true or false, not {text!r}", name)
        return text == "true"

    def _invalid(self, problem: str, name: str) -> InvalidRequestError:
        action = f"Correct the value of {name}, or omit it."
        return InvalidRequestError(problem, table=self.location.uri, option=name, action=action)


def open_on(location: Location, branch: str | None, at: Reference) -> Table:
    """Open a version of a table: of a branch, if one is named."""
    place = TablePlace(location)
    match at:
        case Latest() if branch is not None:
            return place.open(OnBranch(branch))
        case AtVersion(version) if branch is not None:
            return place.open(OnBranch(branch, version))
        case AsOf() if branch is not None:
            return place.branch(branch).open(at, main=location)
        case _:
            return place.open(at)


def as_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return options as Spark passes them: as text."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in options.items()
    }


def parse(options: Mapping[str, str], allowed: Collection[str]) -> TableOptions:
    """Parse options; unknown options are refused with a suggestion."""
    given = {key: value for key, value in options.items() if key.lower() != PATH}
    uri = next((value for key, value in options.items() if key.lower() == PATH), None)
    if _SEVERAL in options:
        raise InvalidRequestError(
            f"one path can be loaded at a time, not several: {options[_SEVERAL]}",
            action="Load each table by itself, and combine them with unionByName.",
        )
    if not uri:
        raise InvalidRequestError(
            "no path was specified",
            action="Set the path of the table: .load(path), .save(path) or option path.",
        )
    storage, rest = split_storage(given)
    location = location_at(uri, {key.lower(): value for key, value in storage.items()})
    rest = _own_names(rest, location.uri)
    ensure_known(rest, allowed, location.uri)
    lowered = {key.lower(): value for key, value in rest.items()}
    return TableOptions(location=location, rest=lowered)


def _own_names(options: Mapping[str, str], table: str) -> dict[str, str]:
    """Return options with the names of other table formats replaced; a version may be a tag."""
    renamed: dict[str, str] = {}
    given_as: dict[str, str] = {}
    for key, value in options.items():
        name = _ALIASES.get(key.lower(), key)
        if name == "version" and name != key and not value.strip().isdecimal():
            name = "tag"
        if name in renamed:
            both = " and ".join(sorted((given_as[name], key)))
            problem = f"options {both} cannot be combined"
            raise InvalidRequestError(problem, table=table, action="Set only one of them.")
        renamed[name], given_as[name] = value, key
    return renamed


def location_at(uri: str, storage: Mapping[str, str]) -> Location:
    """Parse the location of a table, with the options of the store."""
    given = {key: value for key, value in storage.items() if key.lower() != CONFINE_TO.lower()}
    roots = next((storage[key] for key in storage if key not in given), None)
    return Location.parse(uri, given, confine_to=None if roots is None else _roots(roots))


def options_for(location: Location) -> dict[str, str]:
    """Return the options for a location: the inverse of `location_at`."""
    if location.confine_to is None:
        return location.storage_options
    return {**location.storage_options, CONFINE_TO: json.dumps(location.confine_to)}


def _roots(text: str) -> list[str]:
    """Parse the option `confineTo`: one root, or a JSON list of them."""
    if not text.strip().startswith("["):
        return [text] if text.strip() else []
    try:
        roots = json.loads(text)
    except ValueError:
        roots = None
    if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
        problem = f"option {CONFINE_TO} must be one root or a JSON list of roots: {text!r}"
        raise InvalidRequestError(problem, option=CONFINE_TO)
    return roots


def split_storage(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Separate options of the store, which may be secret, from the others."""
    storage: dict[str, str] = {}
    rest: dict[str, str] = {}
    for key, value in options.items():
        if key.lower().startswith(_STORAGE_PREFIX):
            storage[key[len(_STORAGE_PREFIX) :]] = value
        elif (
            is_known(key) or key.lower().startswith(_PREFIXES) or key.lower() == CONFINE_TO.lower()
        ):
            storage[key] = value
        else:
            rest[key] = value
    return storage, rest


def ensure_known(
    given: Collection[str], allowed: Collection[str], table: str | None = None
) -> None:
    """Refuse an unknown option, and suggest a similar one."""
    by_name = {name.lower(): name for name in allowed}
    for key in given:
        if key.lower() in by_name:
            continue
        action = suggestion(key, allowed, "options")
        problem = f"unknown option {key}"
        raise InvalidRequestError(problem, table=table, option=key, action=action)


def reference(options: TableOptions) -> Reference:
    """Return the version selected by options."""
    version, branch = options.whole("version"), options.get("branch")
    tag, time = options.get("tag"), options.get("timestamp")
    given = [name for name in ("version", "tag", "timestamp") if options.get(name) is not None]
    if len(given) > 1:
        raise _exclusive(options, given)
    if tag is not None:
        if branch is not None:
            raise _exclusive(options, ["tag", "branch"])
        return AtTag(tag)
    if time is not None:
        return parse_time(time, options.location.uri)
    if branch is not None:
        return OnBranch(branch, version)
    return Latest() if version is None else AtVersion(version)


def _exclusive(options: TableOptions, names: list[str]) -> InvalidRequestError:
    problem = f"options {' and '.join(names)} cannot be combined"
    return InvalidRequestError(problem, table=options.location.uri, action="Set only one of them.")


def parse_time(text: str, table: str | None = None) -> AsOf:
    """Parse a time: ISO 8601 with a time zone, or seconds since 1970.

    A time without a time zone is in that of a session, which only `add_zone` knows.
    """
    cleaned = text.strip()
    try:
        if cleaned.replace(".", "", 1).isdigit():
            return AsOf(int(Decimal(cleaned).scaleb(6)))
        when = datetime.fromisoformat(cleaned)
    except ValueError as error:
        action = "Write it as 2026-01-31 12:00:00+00:00."
        raise InvalidRequestError(
            f"{text!r} is not a valid time", table=table, action=action
        ) from error
    if when.tzinfo is None:
        raise InvalidRequestError(
            f"{text!r} has no time zone, and a plain data source does not know the session's",
            table=table,
            action=f"Write it as {when}+00:00.",
        )
    return time_reference(when)


DATA_VERSION, STABLE_ROW_IDS = "dataStorageVersion", "stableRowIds"
_AT_CREATION = {name.lower(): name for name in (DATA_VERSION, STABLE_ROW_IDS)}
_OPTION = "option."
_RESERVED = ("provider", "location", "owner", "external", "is_managed_location", "table_type")
"""Properties that Spark itself reserves."""


def config_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are stored as the table's config.

    Properties include options, which may be secret and are not stored.
    """
    return {
        key: value
        for key, value in properties.items()
        if key not in _RESERVED and not key.startswith(_OPTION) and not _is_for_creation(key)
    }


def creation_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the creation options of a table, by lower-case name.

    All OPTIONS are included, and those TBLPROPERTIES that are fixed at creation.
    """
    options = {
        key.removeprefix(_OPTION).lower(): value
        for key, value in properties.items()
        if key.startswith(_OPTION)
    }
    for key, value in properties.items():
        if not _is_for_creation(key):
            continue
        if options.setdefault(key.lower(), value) != value:
            raise InvalidRequestError(
                f"{key} is {value!r} in TBLPROPERTIES and {options[key.lower()]!r} in OPTIONS",
                option=key,
            )
    return options


def properties_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties of a version as Spark shows them."""
    manifest = snapshot.manifest
    return {
        "provider": "lance",
        "location": snapshot.location.uri,
        DATA_VERSION: manifest.data_version.value,
        STABLE_ROW_IDS: str(manifest.has_stable_row_ids).lower(),
        **manifest.config,
    }


def ensure_changeable(key: str) -> None:
    """Refuse to change a property that cannot be changed."""
    if key == "location":
        raise UnsupportedError(
            "the location of a Lance table cannot be changed",
            action="Clone the table to the new location: CALL lance.system.clone(...).",
        )
    if key in _RESERVED:
        raise UnsupportedError(f"property {key} of a Lance table cannot be changed", option=key)
    if _is_for_creation(key):
        raise UnsupportedError(
            f"property {key} is fixed at table creation",
            option=key,
            action=f"Recreate the table with TBLPROPERTIES ('{key}' = ...).",
        )


def _is_for_creation(key: str) -> bool:
    return key.lower() in _AT_CREATION


_TIME_OPTIONS = ("timestamp", "timestampasof", "startingtimestamp", "endingtimestamp")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUERY = "SELECT unix_micros(try_cast(:text AS TIMESTAMP)) AS micros"


def add_zones(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options with time zones added to their times."""
    return {
        key: add_zone(spark, value) if key.lower() in _TIME_OPTIONS else value
        for key, value in options.items()
    }


def add_zone(spark: SparkSession, time: str | datetime) -> str:
    """Return a time with its time zone, as `TIMESTAMP AS OF` interprets it.

    Text without a time zone is in that of the session, and a naive datetime in that of the process,
    as everywhere in PySpark. Text that Spark cannot parse is returned unchanged.
    """
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.astimezone()).isoformat()
    row = spark.sql(_QUERY, args={"text": time.strip()}).first()
    if row is None or row.micros is None:
        return time
    try:
        return (_EPOCH + timedelta(microseconds=row.micros)).isoformat()
    except OverflowError as error:
        raise InvalidRequestError(f"time {time!r} is out of range") from error
