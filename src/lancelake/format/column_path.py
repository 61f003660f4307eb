"""Column paths: names separated by dots, in backticks if a name contains a dot."""

from __future__ import annotations

from collections.abc import Iterable

from lancelake.errors import InvalidRequestError


def split_path(path: str) -> tuple[str, ...]:
    """Split a path at its dots; a segment in backticks may have dots and doubled backticks."""
    segments: list[str] = []
    rest = path
    while True:
        if rest.startswith("`"):
            end = _closing_backtick(path, rest)
            segments.append(rest[1:end].replace("``", "`"))
            rest = rest[end + 1 :]
            if not rest:
                return tuple(segments)
            if not rest.startswith("."):
                raise _bad_path(path)
            rest = rest[1:]
        else:
            segment, dot, rest = rest.partition(".")
            segments.append(segment)
            if not dot:
                return tuple(segments)


def quote_segment(name: str) -> str:
    """Quote a segment of a path if it needs quotes."""
    return quoted_name(name) if "." in name or "`" in name else name


def join_path(names: Iterable[str]) -> str:
    """Return the path that `split_path` splits into these names."""
    return ".".join(map(quote_segment, names))


def quoted_name(name: str) -> str:
    """Return a name in backticks, as Lance SQL, Spark SQL and the codec accept it."""
    return "`" + name.replace("`", "``") + "`"


def quoted_path(names: Iterable[str]) -> str:
    """Return a path with every name in backticks; unlike `join_path`, even of empty names."""
    return ".".join(map(quoted_name, names))


def _closing_backtick(path: str, rest: str) -> int:
    position = 1
    while position < len(rest):
        if rest[position] != "`":
            position += 1
        elif rest[position : position + 2] == "``":
            position += 2
        else:
            return position
    raise _bad_path(path)


def _bad_path(path: str) -> InvalidRequestError:
    return InvalidRequestError(f"column path {path!r} has unbalanced backticks", column=path)
