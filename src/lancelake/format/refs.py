"""Tag and branch documents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version

_EMPTY: FrozenMap[str, str] = FrozenMap()
_MAX_DOCUMENT = 1 << 20
_LEAP_SECOND = re.compile(r"(:\d\d):60")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A named version, of the main line or a branch."""

    branch: str | None
    version: Version
    manifest_size: int
    created_at: str | None = None
    updated_at: str | None = None
    metadata: FrozenMap[str, str] = _EMPTY
    extra: FrozenMap[str, str] = _EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """One step of a branch's lineage: the parent's version, and an id of the step."""

    version: Version
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch and the version it was created from."""

    parent_branch: str | None
    parent_version: Version
    create_at: int
    manifest_size: int
    lineage: tuple[Fork, ...] | None = None
    metadata: FrozenMap[str, str] = _EMPTY
    extra: FrozenMap[str, str] = _EMPTY


_TAG_KEYS = {"branch", "version", "createdAt", "updatedAt", "manifestSize", "metadata"}
_BRANCH_KEYS = {
    "parentBranch",
    "identifier",
    "parentVersion",
    "createAt",
    "manifestSize",
    "metadata",
}


def decode_tag(data: bytes) -> Tag:
    """Read a tag document."""
    body = _document(data, "tag")
    try:
        return Tag(
            branch=_optional_text(body, "branch"),
            version=Version(_number(body["version"])),
            manifest_size=_number(body.get("manifestSize", 0)),
            created_at=_optional_text(body, "createdAt"),
            updated_at=_optional_text(body, "updatedAt"),
            metadata=_text_map(body.get("metadata")),
            extra=_extra(body, _TAG_KEYS),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt("tag", error) from error


def encode_tag(tag: Tag) -> bytes:
    """Write a tag document."""
    body: dict[str, object] = {"branch": tag.branch, "version": tag.version}
    if tag.created_at is not None:
        body["createdAt"] = tag.created_at
    if tag.updated_at is not None:
        body["updatedAt"] = tag.updated_at
    body["manifestSize"] = tag.manifest_size
    if tag.created_at is not None or tag.metadata:
        body["metadata"] = dict(tag.metadata)
    return _render(body, tag.extra)


def decode_branch(data: bytes) -> Branch:
    """Read a branch document."""
    body = _document(data, "branch")
    try:
        return Branch(
            parent_branch=_optional_text(body, "parentBranch"),
            parent_version=Version(_number(body["parentVersion"])),
            create_at=_number(body.get("createAt", 0)),
            manifest_size=_number(body.get("manifestSize", 0)),
            lineage=_lineage(body.get("identifier")),
            metadata=_text_map(body.get("metadata")),
            extra=_extra(body, _BRANCH_KEYS),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt("branch", error) from error


def encode_branch(branch: Branch) -> bytes:
    """Write a branch document."""
    body: dict[str, object] = {"parentBranch": branch.parent_branch}
    if branch.lineage is not None:
        body["identifier"] = {"version_mapping": [[f.version, f.uuid] for f in branch.lineage]}
    body["parentVersion"] = branch.parent_version
    body["createAt"] = branch.create_at
    body["manifestSize"] = branch.manifest_size
    if branch.metadata:
        body["metadata"] = dict(branch.metadata)
    return _render(body, branch.extra)


def tag_time(text: str) -> datetime:
    """Return a time of a tag document (RFC 3339, with any offset) in UTC, to the microsecond."""
    try:
        # A leap second is the second before it, as for official releases.
        moment = datetime.fromisoformat(_LEAP_SECOND.sub(r"\1:59", text.upper()))
        if moment.tzinfo is None:
            raise ValueError("it has no offset")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        msg = f"a tag document has the time {text!r}, which is not RFC 3339"
        raise CorruptTableError(msg, action="Delete the tag and create it again.") from error


def _document(data: bytes, kind: str) -> dict[str, object]:
    try:
        if len(data) > _MAX_DOCUMENT:
            raise ValueError("the document is too large")
        body = json.loads(data, parse_constant=_refuse_constant)
        if not isinstance(body, dict):
            raise ValueError("not an object")
        # A lone surrogate is valid JSON but cannot be written back.
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _corrupt(kind, error) from error
    return body


def _refuse_constant(name: str) -> object:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        msg = f"{value!r} is not an unsigned number"
        raise ValueError(msg)
    return value


def _optional_text(body: Mapping[str, object], key: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        msg = f"{key} is not text"
        raise ValueError(msg)
    return value


def _text_map(value: object) -> FrozenMap[str, str]:
    if value is None:
        return _EMPTY
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError("metadata is not a map of texts")
    return FrozenMap(value)


def _lineage(value: object) -> tuple[Fork, ...] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("identifier is not an object")
    pairs = value["version_mapping"]
    if not isinstance(pairs, list) or not all(isinstance(p, list) for p in pairs):
        raise ValueError("identifier does not list pairs")
    return tuple(Fork(version=Version(_number(v)), uuid=_text(u)) for v, u in pairs)


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"{value!r} is not text"
        raise ValueError(msg)
    return value


def _extra(body: Mapping[str, object], names: set[str]) -> FrozenMap[str, str]:
    """Keep keys of newer writers, as JSON text."""
    return FrozenMap({k: json.dumps(v) for k, v in body.items() if k not in names})


def _render(body: dict[str, object], extra: FrozenMap[str, str]) -> bytes:
    body |= {k: json.loads(v) for k, v in extra.items()}
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def _corrupt(kind: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(f"{kind} document cannot be decoded: {error}")
