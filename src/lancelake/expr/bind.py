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

# Words that are part of the language even where a column has the same name; unless they stand
# where only a value can, before a comparison.
# fmt: off
_RESERVED = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CAST", "DISTINCT", "ELSE", "END", "ESCAPE",
    "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LIKE", "NOT", "NULL", "OR",
    "SELECT", "SIMILAR", "THEN", "TRUE", "TRY_CAST", "UNKNOWN", "WHEN", "WHERE",
})
_NEVER_COLUMNS = frozenset({"EXISTS", "FALSE", "INTERVAL", "NULL", "TRUE"})
_BEFORE_VALUES = frozenset({"AND", "ELSE", "NOT", "OR", "THEN", "WHEN"})
# fmt: on
# Types that Lance knows by names that DataFusion does not.
_TYPE_NAMES = {"BINARY": "BYTEA", "DATETIME": "TIMESTAMP"}
_JOINS = ("AND", "OR")
_BLANK = (TokenKind.SPACE, TokenKind.COMMENT)
_NAMES = (TokenKind.NAME, TokenKind.QUOTED_NAME)
_TEXTS = (TokenKind.STRING, TokenKind.QUOTED_STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundExpression:
    """An expression over numbered inputs, each the value at a path of the table's schema."""

    text: str
    sql: str
    paths: tuple[tuple[str, ...], ...]
    known: tuple[str, ...] = ()


def input_name(position: int) -> str:
    """Name of the input at this position in `BoundExpression.sql`; no bare word can be it."""
    return f"input {position}"


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
        return BoundExpression(
            text=self._text,
            sql=self._rewritten(0, len(self._tokens)),
            paths=tuple(self._paths),
            known=self._schema.names,
        )

    def _rewritten(self, start: int, stop: int) -> str:
        out: list[str] = []
        while start < stop:
            text, start = self._rewrite(start)
            out.append(text)
        return "".join(out)

    def _rewrite(self, position: int) -> tuple[str, int]:
        token = self._tokens[position]
        match token.kind:
            case TokenKind.COMMENT:
                return " ", position + 1
            case TokenKind.QUOTED_STRING:
                return _quoted(token.value), position + 1
            case TokenKind.SYMBOL if token.text == "." and self._is_member(position):
                member = self._tokens[position + 1]
                return f"[{_quoted(_name(member))}]", position + 2
            case TokenKind.QUOTED_NAME:
                return self._column(position, required=True)
            case TokenKind.NAME if self._is_joined_match(position):
                return self._match_found(position)
            case TokenKind.NAME if self._is_type(position):
                return _TYPE_NAMES.get(token.text.upper(), token.text), position + 1
            case TokenKind.NAME if self._may_be_column(position):
                return self._column(position, required=False)
            case _:
                return token.text, position + 1

    def _is_member(self, position: int) -> bool:
        """Whether a dot leads into a value that is no column, such as an item of a list."""
        before = self._tokens[position - 1] if position else None
        after = self._tokens[position + 1] if position + 1 < len(self._tokens) else None
        follows_value = before is not None and before.text in ("]", ")")
        return follows_value and after is not None and after.kind in _NAMES

    def _is_joined_match(self, position: int) -> bool:
        """Whether this is a `regexp_match` that is negated, or joined with other conditions."""
        if self._tokens[position].text.lower() != "regexp_match":
            return False
        before = self._word(range(position - 1, -1, -1), "(")
        after = self._word(range(self._closing(position) + 1, len(self._tokens)), ")")
        if before not in ("", "NOT", *_JOINS) or after not in ("", *_JOINS):
            return False
        return bool(before or after)

    def _word(self, positions: range, parenthesis: str) -> str:
        """Return the first word in this direction that is no such parenthesis, in capitals."""
        found = (self._tokens[i] for i in positions)
        words = (t for t in found if t.kind not in _BLANK and t.text != parenthesis)
        word = next(words, None)
        return "" if word is None else word.text.upper()

    def _match_found(self, position: int) -> tuple[str, int]:
        """DataFusion negates and joins conditions only: ask whether there is a match."""
        end = self._closing(position) + 1
        call = self._tokens[position].text + self._rewritten(position + 1, end)
        return f"({call} IS NOT NULL)", end

    def _closing(self, position: int) -> int:
        """Find the parenthesis that closes the call at this position."""
        depth = 0
        for i in range(position + 1, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[i].text, 0)
            if depth <= 0 and self._tokens[i].kind not in _BLANK:
                return i
        return len(self._tokens) - 1

    def _is_type(self, position: int) -> bool:
        """Whether a word stands where only a type can: after a cast, or before a text."""
        follower, before = self._next(position), self._before(position)
        is_typed_text = follower is not None and follower.kind in _TEXTS
        if self._tokens[position].text.upper() in _RESERVED:
            return False
        return is_typed_text or (before is not None and before.text.upper() in ("AS", "::"))

    def _may_be_column(self, position: int) -> bool:
        follower, before = self._next(position), self._before(position)
        if follower is not None and follower.text == "(":
            return False
        if before is not None and before.text == ".":
            return False
        if self._tokens[position].text.upper() in _RESERVED:
            return self._is_reserved_column(position)
        return True

    def _is_reserved_column(self, position: int) -> bool:
        follower, before = self._next(position), self._before(position)
        if self._tokens[position].text.upper() in _NEVER_COLUMNS or follower is None:
            return False
        starts_value = (
            before is None
            or before.text.upper() in _BEFORE_VALUES
            or (before.kind is TokenKind.SYMBOL and before.text not in (")", "]"))
        )
        return starts_value and follower.text in ("=", "<", ">", "!")

    def _column(self, position: int, *, required: bool) -> tuple[str, int]:
        segments, end = self._segments(position)
        trail = self._resolve(segments)
        if trail is None:
            if required:
                raise no_such_column(segments[0], self._text, self._schema.names)
            return self._tokens[position].text, position + 1
        if trail not in self._paths:
            self._paths.append(trail)
        rest = "".join(f"[{_quoted(s)}]" for s in segments[len(trail) :])
        return f'"{input_name(self._paths.index(trail))}"{rest}', end

    def _segments(self, position: int) -> tuple[list[str], int]:
        segments = [_name(self._tokens[position])]
        end = position + 1
        while end + 1 < len(self._tokens) and self._tokens[end].text == ".":
            member = self._tokens[end + 1]
            if member.kind not in _NAMES:
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
            # What expressions see of a blob is its description, not what was written.
            is_open = node.logical_type == "struct" and not node.is_blob_v2
            level = node.children if is_open else ()
        return tuple(trail) or None

    def _next(self, position: int) -> Token | None:
        return self._first(range(position + 1, len(self._tokens)))

    def _before(self, position: int) -> Token | None:
        return self._first(range(position - 1, -1, -1))

    def _first(self, positions: range) -> Token | None:
        found = (self._tokens[i] for i in positions)
        return next((token for token in found if token.kind not in _BLANK), None)


def no_such_column(name: str, text: str, known: Sequence[str]) -> InvalidExpressionError:
    """Say that an expression names a column that the table does not have."""
    problem = f"No field named {name} in expression {text!r}; the table has: {', '.join(known)}"
    return InvalidExpressionError(problem, text=text, column=name)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(token: Token) -> str:
    return token.value if token.kind is TokenKind.QUOTED_NAME else token.text


def _find(level: tuple[Field, ...], name: str) -> Field | None:
    exact = next((f for f in level if f.name == name), None)
    lowered = name.lower()
    return exact or next((f for f in level if f.name.lower() == lowered), None)
