"""Column paths: names separated by dots, in backticks if needed; and lists of them."""

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


def split_list(text: str) -> tuple[str, ...]:
    """Split a list of paths at its commas; empty ones are left out."""
    return tuple(part for part in comma_parts(text) if part)


def join_list(paths: Iterable[Iterable[str]]) -> str:
    """Return the list that `split_list` splits into these paths."""
    return ", ".join(".".join(map(_listed_segment, path)) for path in paths)


def comma_parts(text: str) -> tuple[str, ...]:
    """Split a text at its commas, except those in backticks; parts may be empty."""
    parts: list[str] = [""]
    is_quoted = False
    for character in text:
        if character == "`":
            is_quoted = not is_quoted
        if character == "," and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def _listed_segment(name: str) -> str:
    is_plain = name == name.strip() and "," not in name
    return quote_segment(name) if is_plain else quoted_name(name)


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
