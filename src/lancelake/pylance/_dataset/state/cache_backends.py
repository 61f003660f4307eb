"""Cache backends of sessions, as pylance writes them: they are checked, and have no effect."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from lancelake.errors import InvalidRequestError

_KIND = "moka"
_CAPACITY = "capacity"


def ensure_backend(name: str, backend: Any) -> None:
    """Refuse a backend that is neither a URI nor a dict of a known kind with a capacity."""
    try:
        _ensure_moka(*_parsed(backend))
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{name}: {error.problem}", found=repr(backend)) from None


def _parsed(backend: Any) -> tuple[str, dict[str, str]]:
    if isinstance(backend, str):
        kind, colon, rest = backend.partition(":")
        if not colon:
            raise InvalidRequestError(f"cache backend uri {_quoted(backend)} is missing ':'")
        return kind, dict(parse_qsl(rest.partition("?")[2], keep_blank_values=True))
    if not isinstance(backend, dict):
        problem = "expected str (URI) or dict with 'kind'/'options' keys"
        raise InvalidRequestError(f"{problem}, got {type(backend).__name__}")
    unknown = [key for key in backend if key not in ("kind", "options")]
    if unknown:
        problem = f"unknown dict key {_quoted(unknown[0])}; expected 'kind' or 'options'"
        raise InvalidRequestError(problem)
    if "kind" not in backend:
        raise InvalidRequestError("dict must contain a 'kind' key")
    options = backend.get("options") or {}
    if not all(isinstance(value, str) for value in options.values()):
        raise InvalidRequestError("'options' values must be strings")
    return backend["kind"], options


def _ensure_moka(kind: str, options: dict[str, str]) -> None:
    if kind.lower() != _KIND:
        raise InvalidRequestError(f"unknown cache backend kind: {_quoted(kind)}")
    where = f"{_KIND} cache backend"
    unknown = [key for key in options if key != _CAPACITY]
    if unknown:
        raise InvalidRequestError(f"{where}: unknown option {_quoted(unknown[0])}")
    capacity = options.get(_CAPACITY)
    if capacity is None:
        problem = f"{where}: capacity is required; use {_KIND}://?{_CAPACITY}=<bytes>"
        raise InvalidRequestError(problem)
    if not capacity:
        raise InvalidRequestError(f"{where}: capacity must not be empty")
    if not (capacity.isascii() and capacity.isdigit()):
        raise InvalidRequestError(f"{where}: cannot parse capacity {_quoted(capacity)}")


def _quoted(text: object) -> str:
    return f'"{text}"'
