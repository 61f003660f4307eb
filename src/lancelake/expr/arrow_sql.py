"""Translation of pyarrow expressions to SQL.

An expression shows its structure only in its serialized form: an IPC file whose columns are the
constants and whose metadata lists calls, fields and constants in prefix order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidExpressionError, UnsupportedError
from lancelake.expr.literals import quoted, to_sql, type_name
from lancelake.expr.tokens import shown
from lancelake.format.column_path import quoted_name

Options = Mapping[str, pa.Scalar]
_Call = Callable[[Sequence[str], Options], str]

_SCHEMA_BYTES = 72
_METADATA_OFFSET = 16
_INT_BYTES = 4
_CHAINS = {"and": "AND", "and_kleene": "AND", "or": "OR", "or_kleene": "OR"}


def arrow_to_sql(expression: pc.Expression) -> str:
    """Return an expression in SQL; raise for functions without an SQL counterpart."""
    try:
        (serialized,) = expression.__reduce__()[1]
    except pa.ArrowNotImplementedError as error:
        problem = f"filter {expression} refers to columns by position"
        raise UnsupportedError(problem, action="Refer to columns by name.") from error
    batch = pa.ipc.open_file(serialized).get_batch(0)
    reader = _Reader(expression, batch)
    return reader.value()


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A call whose arguments are being read."""

    name: str
    arguments: list[str] = field(default_factory=list)
    options: Options = field(default_factory=dict)


class _Reader:
    def __init__(self, expression: pc.Expression, batch: pa.RecordBatch) -> None:
        self._expression = expression
        self._constants = batch
        self._entries = iter(_metadata(batch.schema))

    def value(self) -> str:
        """Read the expression; chains may be deeper than Python's stack."""
        whole = _Frame(name="")
        open_calls = [whole]
        for kind, text in self._entries:
            match kind:
                case "call":
                    open_calls.append(_Frame(name=text))
                case "end":
                    ended = open_calls.pop()
                    self._end(ended, open_calls[-1])
                case "options":
                    found = self._constants.column(int(text))[0]
                    open_calls[-1].options = dict(found.items())
                case _:
                    open_calls[-1].arguments.append(self._leaf(kind, text))
        return whole.arguments[0]

    def _leaf(self, kind: str, text: str) -> str:
        match kind:
            case "field_ref":
                return quoted_name(text)
            case "nested_field_ref":
                return ".".join(quoted_name(next(self._entries)[1]) for _ in range(int(text)))
            case "literal":
                return self._literal(self._constants.column(int(text))[0])
            case _:
                raise self._refused(f"it holds a {kind}")

    def _end(self, ended: _Frame, around: _Frame) -> None:
        """Add a call to the arguments of the one around it."""
        call = _CALLS.get(ended.name)
        if call is None:
            raise self._refused(f"SQL has no counterpart for the function {ended.name}")
        word = _CHAINS.get(ended.name)
        if word is not None and _CHAINS.get(around.name) == word:
            # The chain of a thousand conditions is nested as deep, and flat in SQL.
            if around.arguments:
                around.arguments += ended.arguments
            else:
                around.arguments = ended.arguments
            return
        around.arguments.append(call(ended.arguments, ended.options))

    def _literal(self, value: pa.Scalar) -> str:
        text = to_sql(value)
        if text is None:
            raise self._refused(f"constants of type {value.type} cannot be expressed in SQL")
        return text

    def _refused(self, problem: str) -> UnsupportedError:
        text = f"filter {shown(str(self._expression))} is not supported: {problem}"
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


def _infix(operator: str) -> _Call:
    return lambda args, _: f"({f' {operator} '.join(args)})"


def _function(name: str) -> _Call:
    return lambda args, _: f"{name}({', '.join(args)})"


def _part_of_date(name: str) -> _Call:
    return lambda args, _: f"date_part('{name}', {args[0]})"


def _is_null(args: Sequence[str], options: Options) -> str:
    test = f"({args[0]} IS NULL)"
    return f"({test} OR isnan({args[0]}))" if _flag(options, "nan_is_null") else test


def _is_in(args: Sequence[str], options: Options) -> str:
    values = options["value_set"].values
    texts = [to_sql(value) for value in values]
    if None in texts:
        problem = f"values of type {values.type} cannot be expressed in SQL"
        raise InvalidExpressionError(problem, text=args[0])
    if not texts:
        return "false"
    return f"({args[0]} IN ({', '.join(str(text) for text in texts)}))"


def _text_test(name: str) -> _Call:
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
    # Unlike CASE, if_else is null where its condition is.
    condition, yes, no = args
    return f"(CASE WHEN {condition} THEN {yes} WHEN NOT {condition} THEN {no} END)"


def _xor(args: Sequence[str], _: Options) -> str:
    return f"({args[0]} <> {args[1]})"


def _flag(options: Options, name: str) -> bool:
    return name in options and bool(options[name].as_py())


def _pattern(options: Options) -> str:
    pattern: Any = options["pattern"].as_py()
    return pattern.decode() if isinstance(pattern, bytes) else str(pattern)


_CALLS: dict[str, _Call] = {
    **{name: _infix(word) for name, word in _CHAINS.items()},
    "xor": _xor,
    "invert": lambda args, _: f"(NOT {args[0]})",
    "equal": _infix("="),
    "not_equal": _infix("<>"),
    "less": _infix("<"),
    "less_equal": _infix("<="),
    "greater": _infix(">"),
    "greater_equal": _infix(">="),
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
    "starts_with": _text_test("starts_with"),
    "ends_with": _text_test("ends_with"),
    "match_substring": _text_test("contains"),
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
