"""Conditions from pyarrow expressions.

An expression shows its structure only in its serialized form: an IPC file whose columns are the
constants and whose metadata lists calls, fields and constants in prefix order. Substrait is no way
to read it: pyarrow adds casts there, and lacks half of the functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidExpressionError, UnsupportedError
from lancelake.expr.bind import BoundExpression, Names, PathOf, no_such_column
from lancelake.expr.build import build
from lancelake.expr.condition import Column, Condition
from lancelake.expr.leaves import Operand, leaf, truth
from lancelake.expr.literals import literal, quoted, to_sql, type_at, type_name
from lancelake.expr.structure import (
    MAX_DEPTH,
    Chain,
    Negation,
    Part,
    Structure,
    check_chains,
    shown,
    tokenize,
)
from lancelake.format.schema import Schema, join_path

Options = Mapping[str, pa.Scalar]
_Sql = Callable[[Sequence[str], Options], str]

_SCHEMA_BYTES = 72
_METADATA_OFFSET = 16
_INT_BYTES = 4
_NAN_TOO = "nan_is_null"
_NULL_OR_NAN = ("is_null", "is_nan")
_CHAINS = {"and": "AND", "and_kleene": "AND", "or": "OR", "or_kleene": "OR"}
_OPERATORS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_TEXT_TESTS = {
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "match_substring": "contains",
}
_TESTS = {
    **_OPERATORS,
    **_TEXT_TESTS,
    "match_like": "LIKE",
    "is_in": "IN",
    "is_null": "IS NULL",
    "is_valid": "IS NOT NULL",
}


def arrow_condition(
    expression: pc.Expression,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra_names: Sequence[str] = (),
    path_of: PathOf | None = None,
) -> Condition:
    """Read an expression; raise for one that is not a condition, or has no counterpart in SQL."""
    whole = _read(expression)
    source = _ArrowSource(whole, Names(schema, extra_names, path_of), arrow_schema)
    return build(source.structure(whole), source, arrow_schema)


@dataclass(frozen=True, slots=True)
class _Field:
    """A column, by its name and those of members."""

    segments: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Call:
    """A function with its arguments."""

    name: str
    arguments: list[_Term] = field(default_factory=list)
    options: Options = field(default_factory=dict)
    open_links: int = 0
    """Calls of the same chain that are still read."""


_Term: TypeAlias = "_Call | _Field | pa.Scalar"


def _read(expression: pc.Expression) -> _Term:
    """Read an expression; chains, which may be deeper than Python's stack, become flat."""
    constants = _serialized(expression)
    entries = _metadata(constants.schema)
    calls = [_Call(name="")]
    for kind, text in entries:
        call = calls[-1]
        match kind:
            case "call" if text in _CHAINS and _CHAINS[text] == _CHAINS.get(call.name):
                call.open_links += 1
            case "call":
                calls.append(_Call(name=text))
            case "end" if call.open_links:
                call.open_links -= 1
            case "end":
                calls.pop()
                calls[-1].arguments.append(call)
            case "options":
                call.options = dict(constants.column(int(text))[0].items())
            case "literal":
                call.arguments.append(constants.column(int(text))[0])
            case _:
                call.arguments.append(_field(kind, text, entries))
        if len(calls) - 1 > MAX_DEPTH:
            problem = f"the expression nests conditions more than {MAX_DEPTH} deep"
            raise InvalidExpressionError(problem, text=shown(str(expression)))
    return calls[0].arguments[0]


def _field(kind: str, text: str, entries: Iterator[tuple[str, str]]) -> _Field:
    if kind == "field_ref":
        return _Field((text,))
    if kind == "nested_field_ref":
        return _Field(tuple(next(entries)[1] for _ in range(int(text))))
    raise _refused(f"it holds a {kind}")


def _serialized(expression: pc.Expression) -> pa.RecordBatch:
    try:
        (serialized,) = expression.__reduce__()[1]
    except pa.ArrowNotImplementedError as error:
        problem = f"filter {expression} refers to columns by position"
        raise UnsupportedError(problem, action="Refer to columns by name.") from error
    return pa.ipc.open_file(serialized).get_batch(0)


class _ArrowSource:
    """The calls of an expression, whose parts are numbers of leaves."""

    def __init__(self, whole: _Term, names: Names, schema: pa.Schema) -> None:
        self._whole = whole
        self._names = names
        self._schema = schema
        self._leaves: list[_Term] = []

    @property
    def text(self) -> str:
        return _bare(_sql(self._whole, join_path))

    def structure(self, term: _Term) -> Structure:
        """Return how leaves are joined."""
        match term:
            case _Call(name="invert"):
                return Negation(self.structure(term.arguments[0]))
            case _Call(name=name) if name in _CHAINS:
                return Chain(_CHAINS[name], tuple(map(self.structure, term.arguments)))
            case _Call(name="is_null") if _flag(term.options, _NAN_TOO):
                tests = (_Call(name=test, arguments=term.arguments) for test in _NULL_OR_NAN)
                return Chain("OR", tuple(map(self.structure, tests)))
            case _:
                self._leaves.append(term)
                return Part(len(self._leaves) - 1, len(self._leaves))

    def plain(self, part: Part) -> Condition | None:
        term = self._leaves[part.start]
        if not isinstance(term, _Call):
            return truth(self._operand(term))
        if term.name not in _TESTS or _flag(term.options, "ignore_case"):
            return None
        value, *others = map(self._operand, term.arguments)
        if "pattern" in term.options:
            others = [_pattern(term.options)]
        elif "value_set" in term.options:
            others = list(map(literal, term.options["value_set"].values))
        return leaf(_TESTS[term.name], value, others)

    def bound(self, part: Part) -> BoundExpression:
        bound = self._bound(self._leaves[part.start : part.stop], "")
        check_chains(tokenize(bound.sql), bound.text)
        return bound

    def joined(self, parts: Sequence[Part], word: str) -> BoundExpression:
        return self._bound([self._leaves[part.start] for part in parts], word)

    def _bound(self, terms: Sequence[_Term], word: str) -> BoundExpression:
        paths: list[tuple[str, ...]] = []

        def numbered(segments: Sequence[str]) -> str:
            value = self._names.value(segments, paths)
            if value is None:
                raise no_such_column(segments[0], self.text, self._names.known)
            return value

        parts = [_bare(_sql(term, numbered)) for term in terms]
        texts = [_bare(_sql(term, join_path)) for term in terms]
        return BoundExpression(
            text=f" {word} ".join(texts),
            sql=f" {word} ".join(f"({part})" for part in parts) if word else parts[0],
            paths=tuple(paths),
            known=self._names.known,
        )

    def _operand(self, term: _Term) -> Operand:
        match term:
            case _Field():
                path = self._names.whole(term.segments)
                dtype = None if path is None else type_at(self._schema, path)
                return None if path is None or dtype is None else Column(path=path, dtype=dtype)
            case _Call():
                return None
            case _:
                return literal(term)


def _sql(term: _Term, name: Callable[[Sequence[str]], str]) -> str:
    """Return an expression in SQL; raise for what has no counterpart there."""
    match term:
        case _Field():
            return name(term.segments)
        case _Call():
            if term.name not in _CALLS:
                raise _refused(f"the function {term.name} has no counterpart in SQL")
            return _CALLS[term.name]([_sql(part, name) for part in term.arguments], term.options)
        case _:
            text = to_sql(term)
            if text is None:
                raise _refused(f"constants of type {term.type} cannot be expressed in SQL")
            return text


def _bare(sql: str) -> str:
    """Return a condition without the parentheses around it."""
    return sql[1:-1] if sql.startswith("(") else sql


def _refused(problem: str) -> UnsupportedError:
    text = f"the filter is not supported: {problem}"
    return UnsupportedError(text, action="Write the filter in SQL.")


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the metadata of a schema in order, repeated keys included, which pyarrow drops."""
    exported = (ctypes.c_byte * _SCHEMA_BYTES)()
    address = ctypes.addressof(exported)
    schema._export_to_c(address)  # pyarrow's access to the C data interface
    try:
        at = ctypes.c_void_p.from_buffer(exported, _METADATA_OFFSET).value or 0
        count, at = _int(at), at + _INT_BYTES
        texts: list[str] = []
        for _ in range(2 * count):
            size = _int(at)
            texts.append(ctypes.string_at(at + _INT_BYTES, size).decode())
            at += _INT_BYTES + size
    finally:
        pa.Schema._import_from_c(address)  # releases what was exported
    yield from zip(texts[::2], texts[1::2], strict=True)


def _int(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def _infix(operator: str) -> _Sql:
    return lambda args, _: f"({f' {operator} '.join(args)})"


def _function(name: str) -> _Sql:
    return lambda args, _: f"{name}({', '.join(args)})"


def _part_of_date(name: str) -> _Sql:
    return lambda args, _: f"date_part('{name}', {args[0]})"


def _is_null(args: Sequence[str], options: Options) -> str:
    test = f"({args[0]} IS NULL)"
    return f"({test} OR isnan({args[0]}))" if _flag(options, _NAN_TOO) else test


def _is_in(args: Sequence[str], options: Options) -> str:
    values = options["value_set"].values
    texts = [to_sql(value) for value in values]
    if None in texts:
        problem = f"values of type {values.type} cannot be expressed in SQL"
        raise InvalidExpressionError(problem, text=args[0])
    if not texts:
        return "false"
    return f"({args[0]} IN ({', '.join(str(text) for text in texts)}))"


def _text_test(name: str) -> _Sql:
    def test(args: Sequence[str], options: Options) -> str:
        pattern = quoted(_pattern(options))
        if _flag(options, "ignore_case"):
            return f"{name}(lower({args[0]}), lower({pattern}))"
        return f"{name}({args[0]}, {pattern})"

    return test


def _like(args: Sequence[str], options: Options) -> str:
    operator = "ILIKE" if _flag(options, "ignore_case") else "LIKE"
    return f"({args[0]} {operator} {quoted(_pattern(options))})"


def _regex(args: Sequence[str], options: Options) -> str:
    flags = ", 'i'" if _flag(options, "ignore_case") else ""
    return f"regexp_like({args[0]}, {quoted(_pattern(options))}{flags})"


def _cast(args: Sequence[str], options: Options) -> str:
    name = type_name(options["to_type"].type)
    if name is None:
        problem = f"casts to {options['to_type'].type} cannot be expressed in SQL"
        raise InvalidExpressionError(problem, text=args[0])
    return f"arrow_cast({args[0]}, {quoted(name)})"


def _if_else(args: Sequence[str], _: Options) -> str:
    # Unlike CASE WHEN, null where the condition is null. Each part is written once: they nest.
    return "(CASE {} WHEN true THEN {} WHEN false THEN {} END)".format(*args)


def _xor(args: Sequence[str], _: Options) -> str:
    return f"({args[0]} <> {args[1]})"


def _flag(options: Options, name: str) -> bool:
    return name in options and bool(options[name].as_py())


def _pattern(options: Options) -> str:
    pattern: Any = options["pattern"].as_py()
    return pattern.decode() if isinstance(pattern, bytes) else str(pattern)


_CALLS: dict[str, _Sql] = {
    **{name: _infix(word) for name, word in (_CHAINS | _OPERATORS).items()},
    **{name: _text_test(test) for name, test in _TEXT_TESTS.items()},
    "xor": _xor,
    "invert": lambda args, _: f"(NOT {args[0]})",
    "is_null": _is_null,
    "is_valid": lambda args, _: f"({args[0]} IS NOT NULL)",
    "is_nan": _function("isnan"),
    "is_in": _is_in,
    "cast": _cast,
    "if_else": _if_else,
    "coalesce": _function("coalesce"),
    "negate": lambda args, _: f"(- {args[0]})",
    "negate_checked": lambda args, _: f"(- {args[0]})",
    "abs": _function("abs"),
    "abs_checked": _function("abs"),
    "sqrt": _function("sqrt"),
    "floor": _function("floor"),
    "ceil": _function("ceil"),
    "power": _function("power"),
    "match_substring_regex": _regex,
    "match_like": _like,
    "utf8_length": _function("character_length"),
    "binary_length": _function("octet_length"),
    "utf8_upper": _function("upper"),
    "utf8_lower": _function("lower"),
    "list_value_length": _function("array_length"),
    "year": _part_of_date("year"),
    "month": _part_of_date("month"),
    "day": _part_of_date("day"),
    "hour": _part_of_date("hour"),
    "minute": _part_of_date("minute"),
}
for _name, _operator in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("divide", "/")):
    _CALLS[_name] = _CALLS[f"{_name}_checked"] = _infix(_operator)
