"""Parse the options of reads and writes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.storage.options import is_known
from lancelake.suggest import suggestion
from lancelake.table.open import (
    AsOf,
    AtTag,
    AtVersion,
    Latest,
    OnBranch,
    Reference,
    open_snapshot,
    time_reference,
)
from lancelake.table.refs import branch_location

PATH = "path"
CONFINE_TO = "confineTo"
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

    def get(self, name: str) -> str | None:
        """Return an option by case-insensitive name."""
        return self.rest.get(name.lower())

    def whole(self, name: str) -> int | None:
        """Return an integer option."""
        text = self.get(name)
        if text is None:
            return None
        if not text.strip().isdecimal():
            raise self._refused(f"option {name} must be an integer, not {text!r}", name)
        return int(text)

    def positive(self, name: str) -> int | None:
        """Return a positive integer option."""
        value = self.whole(name)
        if value == 0:
            raise self._refused(f"option {name} must be at least 1", name)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean option."""
        text = (self.get(name) or str(default)).strip().lower()
        if text not in ("true", "false"):
            raise self._refused(f"option {name} must be true or false, not {text!r}", name)
        return text == "true"

    def _refused(self, problem: str, name: str) -> InvalidRequestError:
        action = f"Correct the value of {name}, or omit it."
        return InvalidRequestError(problem, table=self.location.uri, option=name, action=action)


def parse(options: Mapping[str, str], known: Collection[str]) -> TableOptions:
    """Parse options; unknown options are refused with a suggestion."""
    given = {key: value for key, value in options.items() if key.lower() != PATH}
    uri = next((value for key, value in options.items() if key.lower() == PATH), None)
    if not uri:
        raise InvalidRequestError(
            "no path was specified",
            action="Set the path of the table: .load(path), .save(path) or option path.",
        )
    storage, rest = split_storage(given)
    location = location_at(uri, {key.lower(): value for key, value in storage.items()})
    rest = _own_names(rest, location.uri)
    ensure_known(rest, known, location.uri)
    lowered = {key.lower(): value for key, value in rest.items()}
    return TableOptions(location=location, rest=lowered)


def _own_names(options: Mapping[str, str], table: str) -> dict[str, str]:
    """Return options with the names of other table formats replaced; a version may be a tag."""
    found: dict[str, str] = {}
    for key, value in options.items():
        name = _ALIASES.get(key.lower(), key)
        if name == "version" and name != key and not value.strip().isdecimal():
            name = "tag"
        if name in found:
            problem = f"options {name} and {key} cannot be combined"
            raise InvalidRequestError(problem, table=table, action="Set only one of them.")
        found[name] = value
    return found


def location_at(uri: str, storage: Mapping[str, str]) -> Location:
    """Parse the location of a table, with the options of the store."""
    given = {key: value for key, value in storage.items() if key.lower() != CONFINE_TO.lower()}
    roots = next((storage[key] for key in storage if key not in given), None)
    return Location.parse(uri, given, confine_to=None if roots is None else _roots(roots))


def reached_with(location: Location) -> dict[str, str]:
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
        elif is_storage_key(key) or key.lower() == CONFINE_TO.lower():
            storage[key] = value
        else:
            rest[key] = value
    return storage, rest


def given_to(location: Location, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read or write of a table that was already resolved, in lower case.

    A table resolved by name is confined by its catalog, not by an option.
    """
    storage, rest = split_storage({key.lower(): value for key, value in options.items()})
    rest.pop(PATH, None)
    if CONFINE_TO.lower() in storage and location.confine_to is None:
        raise InvalidRequestError(
            f"option {CONFINE_TO} is not supported for a table that is resolved by name",
            table=location.uri,
            action=f"Set spark.sql.catalog.<name>.{CONFINE_TO}, or load the table by its path.",
        )
    return rest


def is_storage_key(key: str) -> bool:
    """Whether an option belongs to the object store."""
    return is_known(key) or key.lower().startswith(_PREFIXES)


def ensure_known(given: Collection[str], known: Collection[str], table: str | None = None) -> None:
    """Refuse an unknown option, and suggest a similar one."""
    by_name = {name.lower(): name for name in known}
    for key in given:
        if key.lower() in by_name:
            continue
        action = suggestion(key, known, "options")
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

    A time without a time zone is in that of a session, which only `times.zoned` knows.
    """
    cleaned = text.strip()
    try:
        if cleaned.replace(".", "", 1).isdigit():
            return AsOf(int(float(cleaned) * 1_000_000_000))
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


def open_version(options: TableOptions) -> Snapshot:
    """Open the version selected by options."""
    branch, wanted = options.get("branch"), reference(options)
    if isinstance(wanted, AsOf) and branch is not None:
        place = branch_location(options.location, branch)
        return open_snapshot(place, wanted, main=options.location)
    return open_snapshot(options.location, wanted)
