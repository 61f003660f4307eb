"""Binding of names in SQL expressions to columns of the table.

Expressions follow DataFusion's SQL with the quoting rules of Lance: backticks around names, double
quotes around text. Column names match exactly or, otherwise, case-insensitively.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lancelake.errors import InvalidExpressionError, suggestion
from lancelake.expr import structure
from lancelake.expr.literals import quoted
from lancelake.format.schema import Field, Schema

# Keywords, even if a column has the same name, except before a comparison, where only a value
# can be.
# fmt: off
_RESERVED = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CAST", "DISTINCT", "ELSE", "END", "ESCAPE",
    "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LIKE", "NOT", "NULL", "OR",
    "SELECT", "SIMILAR", "THEN", "TRUE", "TRY_CAST", "UNKNOWN", "WHEN", "WHERE",
})
_NEVER_COLUMNS = frozenset({"EXISTS", "FALSE", "INTERVAL", "NULL", "TRUE"})
_BEFORE_VALUES = frozenset({"AND", "ELSE", "NOT", "OR", "THEN", "WHEN"})
# fmt: on
# Type names of Lance that DataFusion does not have.
_TYPE_NAMES = {"BINARY": "BYTEA", "DATETIME": "TIMESTAMP"}
_JOINS = ("AND", "OR")
_NAMES = (structure.TokenKind.NAME, structure.TokenKind.QUOTED_NAME)
_TEXTS = (structure.TokenKind.STRING, structure.TokenKind.QUOTED_STRING)


PathOf = Callable[[tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundExpression:
    """An expression over numbered inputs, each the value at a path of the table's schema."""

    text: str
    sql: str
    paths: tuple[tuple[str, ...], ...]
    known: tuple[str, ...] = ()

    @property
    def column(self) -> tuple[str, ...] | None:
        """Path of the column that is the whole expression; None for any other expression."""
        is_column = self.sql.strip() == f'"{input_name(0)}"'
        return self.paths[0] if is_column else None


def input_name(position: int) -> str:
    """Name of the input at this position in `BoundExpression.sql`; never an unquoted name."""
    return f"input {position}"


def bind(
    text: str,
    schema: Schema,
    *,
    extra_names: Sequence[str] = (),
    path_of: PathOf | None = None,
) -> BoundExpression:
    """Resolve the columns of an expression; `extra_names` are columns that the schema lacks.

    `path_of` maps a resolved column to the path at which it is read.
    """
    binder = Binder(text, Names(schema, extra_names, path_of))
    structure.check_chains(binder.tokens, text)
    return binder.bound(0, len(binder.tokens))


class Names:
    """Finds the columns that the names of an expression mean."""

    def __init__(
        self, schema: Schema, extra_names: Sequence[str] = (), path_of: PathOf | None = None
    ) -> None:
        self._schema = schema
        self._extra = tuple(extra_names)
        self._path_of = path_of or (lambda path: path)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the schema's columns."""
        return self._schema.names

    def whole(self, segments: Sequence[str]) -> tuple[str, ...] | None:
        """Return the path of a column; None for no column, or a part of one that is no struct."""
        trail = self._resolve(segments)
        return self._path_of(trail) if len(trail) == len(segments) else None

    def value(self, segments: Sequence[str], inputs: list[tuple[str, ...]]) -> str | None:
        """Return a column in SQL, and number its input; None where there is no such column."""
        trail = self._resolve(segments)
        if not trail:
            return None
        path = self._path_of(trail)
        if path not in inputs:
            inputs.append(path)
        rest = "".join(f"[{quoted(s)}]" for s in segments[len(trail) :])
        return f'"{input_name(inputs.index(path))}"{rest}'

    def _resolve(self, segments: Sequence[str]) -> tuple[str, ...]:
        """Resolve the segments through structs as far as possible."""
        if segments[0] in self._extra:
            return (segments[0],)
        level: tuple[Field, ...] = self._schema.fields
        trail: list[str] = []
        for segment in segments:
            node = _find(level, segment)
            if node is None:
                break
            trail.append(node.name)
            # Expressions see the descriptor of a blob, not its value.
            is_open = node.logical_type == "struct" and not node.is_blob_v2
            level = node.children if is_open else ()
        return tuple(trail)


class Binder:
    """Resolves the columns of an expression, as a whole or part by part."""

    def __init__(self, text: str, names: Names) -> None:
        if not text.strip():
            raise InvalidExpressionError("the expression is empty", text=text)
        self.text = text
        self.tokens = structure.tokenize(text)
        self._names = names
        self._paths: list[tuple[str, ...]] = []

    def bound(self, start: int, stop: int) -> BoundExpression:
        """Bind the tokens of a range, whose inputs are numbered from zero."""
        self._paths = []
        sql = structure.with_size_limits(self._rewritten(start, stop))
        whole = (start, stop) == (0, len(self.tokens))
        text = self.text if whole else "".join(t.text for t in self.tokens[start:stop]).strip()
        paths = tuple(self._paths)
        return BoundExpression(text=text, sql=sql, paths=paths, known=self._names.known)

    def joined(self, ranges: Sequence[tuple[int, int]], word: str) -> BoundExpression:
        """Bind several ranges as one expression, joined by AND or OR."""
        self._paths = []
        parts = [f"({self._rewritten(start, stop)})" for start, stop in ranges]
        texts = ["".join(t.text for t in self.tokens[a:b]).strip() for a, b in ranges]
        return BoundExpression(
            text=f" {word} ".join(texts),
            sql=structure.with_size_limits(f" {word} ".join(parts)),
            paths=tuple(self._paths),
            known=self._names.known,
        )

    def column_at(self, position: int) -> tuple[tuple[str, ...] | None, int]:
        """Return the path of the column that starts at a token, and the token after it.

        The path is None where the word is not a column, or only starts with one.
        """
        token = self.tokens[position]
        if token.kind is structure.TokenKind.NAME and not self._may_be_column(position):
            return None, position + 1
        segments, end = self._segments(position)
        return self._names.whole(segments), end

    def is_reserved_column(self, position: int) -> bool:
        """Whether a reserved word is a column because it precedes a comparison."""
        return self._is_reserved_column(position)

    def _rewritten(self, start: int, stop: int) -> str:
        out: list[str] = []
        while start < stop:
            text, start = self._rewrite(start)
            out.append(text)
        return "".join(out)

    def _rewrite(self, position: int) -> tuple[str, int]:
        token = self.tokens[position]
        match token.kind:
            case structure.TokenKind.COMMENT:
                return " ", position + 1
            case structure.TokenKind.QUOTED_STRING:
                return quoted(token.value), position + 1
            case structure.TokenKind.SYMBOL if token.text == "." and self._is_member(position):
                member = self.tokens[position + 1]
                return f"[{quoted(_name(member))}]", position + 2
            case structure.TokenKind.QUOTED_NAME:
                return self._column(position, required=True)
            case structure.TokenKind.NAME if self._is_joined_match(position):
                return self._match_found(position)
            case structure.TokenKind.NAME if self._is_type(position):
                return _TYPE_NAMES.get(token.text.upper(), token.text), position + 1
            case structure.TokenKind.NAME if self._may_be_column(position):
                return self._column(position, required=False)
            case _:
                return token.text, position + 1

    def _is_member(self, position: int) -> bool:
        """Whether a dot accesses a value that is not a column, such as an item of a list."""
        before = self.tokens[position - 1] if position else None
        after = self.tokens[position + 1] if position + 1 < len(self.tokens) else None
        follows_value = before is not None and before.text in ("]", ")")
        return follows_value and after is not None and after.kind in _NAMES

    def _is_joined_match(self, position: int) -> bool:
        """Whether this is a `regexp_match` that is negated, or joined with other conditions."""
        if self.tokens[position].text.lower() != "regexp_match":
            return False
        before = self._word(range(position - 1, -1, -1), "(")
        after = self._word(range(self._closing(position) + 1, len(self.tokens)), ")")
        if before not in ("", "NOT", *_JOINS) or after not in ("", *_JOINS):
            return False
        return bool(before or after)

    def _word(self, positions: range, parenthesis: str) -> str:
        """Return the next word in this direction, in capitals, skipping such parentheses."""
        tokens = (self.tokens[i] for i in positions)
        words = (t for t in tokens if t.kind not in structure.BLANK and t.text != parenthesis)
        word = next(words, None)
        return "" if word is None else word.text.upper()

    def _match_found(self, position: int) -> tuple[str, int]:
        """Rewrite to a test for a match, because DataFusion negates and joins booleans only."""
        end = self._closing(position) + 1
        call = self.tokens[position].text + self._rewritten(position + 1, end)
        return f"({call} IS NOT NULL)", end

    def _closing(self, position: int) -> int:
        """Find the parenthesis that closes the call at this position."""
        depth = 0
        for i in range(position + 1, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[i].text, 0)
            if depth <= 0 and self.tokens[i].kind not in structure.BLANK:
                return i
        return len(self.tokens) - 1

    def _is_type(self, position: int) -> bool:
        """Whether a word is a type: after a cast, or before a string."""
        follower, before = self._next(position), self._before(position)
        is_typed_text = follower is not None and follower.kind in _TEXTS
        if self.tokens[position].text.upper() in _RESERVED:
            return False
        return is_typed_text or (before is not None and before.text.upper() in ("AS", "::"))

    def _may_be_column(self, position: int) -> bool:
        follower, before = self._next(position), self._before(position)
        if follower is not None and follower.text == "(":
            return False
        if before is not None and before.text == ".":
            return False
        if self.tokens[position].text.upper() in _RESERVED:
            return self._is_reserved_column(position)
        return True

    def _is_reserved_column(self, position: int) -> bool:
        follower, before = self._next(position), self._before(position)
        if self.tokens[position].text.upper() in _NEVER_COLUMNS or follower is None:
            return False
        starts_value = (
            before is None
            or before.text.upper() in _BEFORE_VALUES
            or (before.kind is structure.TokenKind.SYMBOL and before.text not in (")", "]"))
        )
        return starts_value and follower.text in ("=", "<", ">", "!")

    def _column(self, position: int, *, required: bool) -> tuple[str, int]:
        segments, end = self._segments(position)
        value = self._names.value(segments, self._paths)
        if value is not None:
            return value, end
        if required:
            raise no_such_column(segments[0], self.text, self._names.known)
        return self.tokens[position].text, position + 1

    def _segments(self, position: int) -> tuple[list[str], int]:
        segments = [_name(self.tokens[position])]
        end = position + 1
        while end + 1 < len(self.tokens) and self.tokens[end].text == ".":
            member = self.tokens[end + 1]
            if member.kind not in _NAMES:
                break
            segments.append(_name(member))
            end += 2
        return segments, end

    def _next(self, position: int) -> structure.Token | None:
        return self._first(range(position + 1, len(self.tokens)))

    def _before(self, position: int) -> structure.Token | None:
        return self._first(range(position - 1, -1, -1))

    def _first(self, positions: range) -> structure.Token | None:
        tokens = (self.tokens[i] for i in positions)
        return next((token for token in tokens if token.kind not in structure.BLANK), None)


def no_such_column(name: str, text: str, known: Sequence[str]) -> InvalidExpressionError:
    """Return the error for an unknown column in an expression."""
    problem = f"No field named {name} in expression {structure.shown(text)!r}"
    advice = suggestion(name, known, "columns")
    return InvalidExpressionError(problem, text=structure.shown(text), column=name, action=advice)


def _name(token: structure.Token) -> str:
    return token.value if token.kind is structure.TokenKind.QUOTED_NAME else token.text


def _find(level: tuple[Field, ...], name: str) -> Field | None:
    exact = next((f for f in level if f.name == name), None)
    lowered = name.lower()
    return exact or next((f for f in level if f.name.lower() == lowered), None)
