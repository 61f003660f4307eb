"""Names in an expression -> columns of the table.

Expressions follow DataFusion's SQL with the quoting rules of Lance: backticks around names, double
quotes around text. Column names match exactly or, failing that, without regard to case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelake.errors import InvalidExpressionError
from lancelake.expr.tokens import Token, TokenKind, tokenize
from lancelake.format.schema import Field, Schema

# Words that are part of the language even where a column has the same name.
# fmt: off
_RESERVED = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CAST", "DISTINCT", "ELSE", "END", "ESCAPE",
    "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LIKE", "NOT", "NULL", "OR",
    "SELECT", "SIMILAR", "THEN", "TRUE", "TRY_CAST", "UNKNOWN", "WHEN", "WHERE",
})
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundExpression:
    """An expression over numbered inputs, each the value at a path of the table's schema."""

    text: str
    sql: str
    paths: tuple[tuple[str, ...], ...]
    known: tuple[str, ...] = ()


def input_name(position: int) -> str:
    """Name of the input at this position in `BoundExpression.sql`."""
    return f"c{position}"


def bind(text: str, schema: Schema, *, extra_names: Sequence[str] = ()) -> BoundExpression:
    """Resolve the columns of an expression; `extra_names` are columns beside the schema's."""
    if not text.strip():
        raise InvalidExpressionError("the expression is empty", text=text)
    return _Binder(text, schema, tuple(extra_names)).run()


class _Binder:
    def __init__(self, text: str, schema: Schema, extra_names: tuple[str, ...]) -> None:
        self._text = text
        self._schema = schema
        self._extra = extra_names
        self._tokens = tokenize(text)
        self._paths: list[tuple[str, ...]] = []

    def run(self) -> BoundExpression:
        out: list[str] = []
        position = 0
        while position < len(self._tokens):
            text, position = self._rewrite(position)
            out.append(text)
        return BoundExpression(
            text=self._text,
            sql="".join(out),
            paths=tuple(self._paths),
            known=self._schema.names,
        )

    def _rewrite(self, position: int) -> tuple[str, int]:
        token = self._tokens[position]
        match token.kind:
            case TokenKind.QUOTED_STRING:
                return "'" + token.value.replace("'", "''") + "'", position + 1
            case TokenKind.QUOTED_NAME:
                return self._column(position, required=True)
            case TokenKind.NAME if self._is_call(position):
                is_match = token.text.lower() == "regexp_match"
                return ("regexp_like" if is_match else token.text), position + 1
            case TokenKind.NAME if self._may_be_column(position):
                return self._column(position, required=False)
            case _:
                return token.text, position + 1

    def _is_call(self, position: int) -> bool:
        follower = self._next(position)
        return follower is not None and follower.text == "("

    def _may_be_column(self, position: int) -> bool:
        if self._tokens[position].text.upper() in _RESERVED:
            return False
        follower, before = self._next(position), self._before(position)
        is_typed_literal = follower is not None and follower.kind is TokenKind.STRING
        is_type_name = before is not None and before.text.upper() == "AS"
        is_member = before is not None and before.text in (".", "::")
        return not (is_typed_literal or is_type_name or is_member)

    def _column(self, position: int, *, required: bool) -> tuple[str, int]:
        segments, end = self._segments(position)
        trail = self._resolve(segments)
        if trail is None:
            if required:
                raise no_such_column(segments[0], self._text, self._schema.names)
            return self._tokens[position].text, position + 1
        if trail not in self._paths:
            self._paths.append(trail)
        rest = "".join(f"['{s}']" for s in segments[len(trail) :])
        return f'"{input_name(self._paths.index(trail))}"{rest}', end

    def _segments(self, position: int) -> tuple[list[str], int]:
        segments = [_name(self._tokens[position])]
        end = position + 1
        while end + 1 < len(self._tokens) and self._tokens[end].text == ".":
            member = self._tokens[end + 1]
            if member.kind not in (TokenKind.NAME, TokenKind.QUOTED_NAME):
                break
            segments.append(_name(member))
            end += 2
        return segments, end

    def _resolve(self, segments: list[str]) -> tuple[str, ...] | None:
        """Follow the segments through structs as far as they lead."""
        if segments[0] in self._extra:
            return (segments[0],)
        level: tuple[Field, ...] = self._schema.fields
        trail: list[str] = []
        for segment in segments:
            node = _find(level, segment)
            if node is None:
                break
            trail.append(node.name)
            level = node.children if node.logical_type == "struct" else ()
        return tuple(trail) or None

    def _next(self, position: int) -> Token | None:
        rest = self._tokens[position + 1 :]
        return next((t for t in rest if t.kind is not TokenKind.SPACE), None)

    def _before(self, position: int) -> Token | None:
        earlier = reversed(self._tokens[:position])
        return next((t for t in earlier if t.kind is not TokenKind.SPACE), None)


def no_such_column(name: str, text: str, known: Sequence[str]) -> InvalidExpressionError:
    """Say that an expression names a column that the table does not have."""
    problem = f"No field named {name} in expression {text!r}; the table has: {', '.join(known)}"
    return InvalidExpressionError(problem, text=text, column=name)


def _name(token: Token) -> str:
    return token.value if token.kind is TokenKind.QUOTED_NAME else token.text


def _find(level: tuple[Field, ...], name: str) -> Field | None:
    exact = next((f for f in level if f.name == name), None)
    lowered = name.lower()
    return exact or next((f for f in level if f.name.lower() == lowered), None)
