"""Expressions and conditions by chance: every kind of value, every operator that knows it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

COLUMNS: dict[str, tuple[str, ...]] = {
    "whole": ("id", "i8", "i16", "i32", "i64", "st.x", "late"),
    "float": ("f32", "f64", "st.z.q"),
    "decimal": ("d5", "d38", "sm.d"),
    "text": ("s", "s", "st.y"),
    "flag": ("bo",),
    "day": ("day",),
    "time": ("ts",),
    "local": ("ntz",),
    "lapse": ("lapse",),
    "clock": ("clock",),
    "bytes": ("bin",),
}
NESTED = ("st", "st.z", "xs", "ss", "ps", "xx", "m", "mm", "sm", "sm.m", "st.z.w")
SCALARS = tuple(COLUMNS)
_LITERALS: dict[str, tuple[str, ...]] = {
    "whole": ("0", "1", "-1", "7", "42", "99", "300", "2147483647", "-128", "1099511627776"),
    "float": (
        "0.0D",
        "-0.0D",
        "1.5D",
        "0.1D",
        "3",
        "1e3D",
        "double('NaN')",
        "double('Infinity')",
        "float(0.1)",
        "-1.5BD",
    ),
    "decimal": ("0", "1.5", "-1.50", "999.99", "0.001", "12345678901234567890.123456789012345678"),
    "text": (
        "''",
        "' '",
        "'a'",
        "'abc'",
        "'ABC'",
        "'it\\'s'",
        "'zürich'",
        "'日本語'",
        "'🦀🚀'",
        "'back\\\\\\\\s'",
        "'b'",
    ),
    "flag": ("true", "false"),
    "day": ("DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'"),
    "time": (
        "TIMESTAMP'1970-01-01 00:00:00'",
        "TIMESTAMP'2024-02-29 12:30:15.123456'",
        "TIMESTAMP'1900-01-01 00:00:00.000001'",
    ),
    "local": ("TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-02-29 12:30:15.123456'"),
    "lapse": (
        "INTERVAL '0' DAY",
        "INTERVAL '1' DAY",
        "INTERVAL '-5' HOUR",
        "INTERVAL '1 2' DAY TO HOUR",
    ),
    "clock": ("TIME'00:00:00'", "TIME'12:30:15.123456'"),
    "bytes": ("X''", "X'00'", "X'FF00'", "X'616263'"),
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "=", "<", ">")
_PATTERNS = ("'a%'", "'%c'", "'%b%'", "'a_c'", "'a\\\\%c'", "''", "'%'", "'_'", "'%ü%'", "'🦀%'")
_REGULAR = ("'^a'", "'c$'", "'[0-9]+'", "'.'", "'^$'")
_ACROSS = (
    ("whole", "float"),
    ("whole", "decimal"),
    ("float", "decimal"),
    ("day", "time"),
    ("day", "local"),
    ("time", "local"),
)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Makes expressions over the columns of the table that goes by `alias`."""

    random: random.Random
    alias: str = "a"

    def column(self, kind: str) -> str:
        """Return a column of a kind."""
        return self.named(self.random.choice(COLUMNS[kind]))

    def named(self, name: str) -> str:
        """Return a column of this table by name."""
        return f"{self.alias}.{name}"

    def any_column(self) -> str:
        """Return a column of any kind."""
        if self.random.random() < 0.25:
            return self.named(self.random.choice(NESTED))
        return self.column(self.random.choice(SCALARS))

    def literal(self, kind: str) -> str:
        """Return a constant of a kind."""
        return self.random.choice(_LITERALS[kind])

    def value(self, kind: str, depth: int = 1) -> str:
        """Return an expression of a kind."""
        if depth == 0 or self.random.random() < 0.4:
            return self.column(kind)
        makers = _MAKERS.get(kind)
        if makers is None or self.random.random() < 0.2:
            return self._generic(kind, depth)
        column, other = self.value(kind, depth - 1), self.literal(kind)
        return self.random.choice(makers).format(c=column, l=other, x=self)

    def _generic(self, kind: str, depth: int) -> str:
        first, second = self.value(kind, depth - 1), self.column(kind)
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"coalesce({first}, {self.literal(kind)})",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {first} ELSE {second} END",
            lambda: f"if({self.condition(0)}, {first}, NULL)",
            lambda: f"nullif({first}, {self.literal(kind)})",
            lambda: f"greatest({first}, {second})",
            lambda: f"least({first}, {second})",
        )
        return self.random.choice(shapes)()

    def condition(self, depth: int = 2) -> str:
        """Return a condition."""
        if depth > 0 and self.random.random() < 0.55:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return self.random.choice(
                (
                    f"({left} AND {right})",
                    f"({left} OR {right})",
                    f"NOT ({left})",
                    f"({left} AND {right})",
                )
            )
        shapes = (
            self._comparison,
            self._comparison,
            self._comparison,
            self._membership,
            self._null_test,
            self._range,
            self._text_test,
            self._across,
            self._columns,
            self._nested_test,
            self._flag,
            self._computed,
        )
        return self.random.choice(shapes)()

    def _kind(self) -> str:
        return self.random.choice(SCALARS)

    def _comparison(self) -> str:
        kind = self._kind()
        sides = [
            self.column(kind),
            self.random.choice([self.literal(kind), "NULL"][: self._mostly()]),
        ]
        if self.random.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {self.random.choice(_COMPARISONS)} {sides[1]}"

    def _mostly(self) -> int:
        return 2 if self.random.random() < 0.1 else 1

    def _membership(self) -> str:
        kind = self._kind()
        known = list(_LITERALS[kind])
        values = self.random.sample(known, self.random.randint(1, min(4, len(known))))
        if self.random.random() < 0.25:
            values.append("NULL")
        word = self.random.choice(("IN", "IN", "NOT IN"))
        return f"{self.column(kind)} {word} ({', '.join(values)})"

    def _null_test(self) -> str:
        return f"{self.any_column()} IS {self.random.choice(('NULL', 'NOT NULL'))}"

    def _range(self) -> str:
        kind = self._kind()
        word = self.random.choice(("BETWEEN", "NOT BETWEEN"))
        return f"{self.column(kind)} {word} {self.literal(kind)} AND {self.literal(kind)}"

    def _text_test(self) -> str:
        column = self.column("text")
        word = self.random.choice(("", "NOT "))
        shapes = (
            f"{column} {word}LIKE {self.random.choice(_PATTERNS)}",
            f"{column} {word}RLIKE {self.random.choice(_REGULAR)}",
            f"startswith({column}, {self.literal('text')})",
            f"endswith({column}, {self.literal('text')})",
            f"contains({column}, {self.literal('text')})",
            f"{column} ILIKE {self.random.choice(_PATTERNS)}",
            f"{column} LIKE ANY ('a%', '%c')",
        )
        return self.random.choice(shapes)

    def _across(self) -> str:
        pair = list(self.random.choice(_ACROSS))
        self.random.shuffle(pair)
        left = self.column(pair[0])
        right = self.random.choice((self.column(pair[1]), self.literal(pair[1])))
        return f"{left} {self.random.choice(_COMPARISONS)} {right}"

    def _columns(self) -> str:
        kind = self._kind()
        return f"{self.column(kind)} {self.random.choice(_COMPARISONS)} {self.column(kind)}"

    def _nested_test(self) -> str:
        return self.random.choice(_NESTED_TESTS).format(a=self.alias)

    def _flag(self) -> str:
        return self.random.choice(
            ("{a}.bo", "NOT {a}.bo", "{a}.bo IS TRUE", "{a}.bo IS NOT FALSE")
        ).format(a=self.alias)

    def _computed(self) -> str:
        kind = self._kind()
        return f"{self.value(kind, 2)} {self.random.choice(_COMPARISONS)} {self.value(kind)}"


_MAKERS: dict[str, Sequence[str]] = {
    "whole": (
        "try_add({c}, {l})",
        "try_subtract({l}, {c})",
        "try_multiply({c}, 3)",
        "({c} % 7)",
        "try_divide({c}, 2)",
        "length({x.alias}.s)",
        "size({x.alias}.xs)",
        "year({x.alias}.day)",
        "cast({c} AS bigint)",
        "try_cast({x.alias}.s AS int)",
        "({c} & 255)",
        "hash({c})",
        "{x.alias}.m['k1']",
        "get({x.alias}.xs, 0)",
        "get(get({x.alias}.xx, 0), 0)",
    ),
    "float": (
        "({c} + 1)",
        "({c} * 2)",
        "abs({c})",
        "cast({x.alias}.i32 AS double)",
        "nanvl({c}, 0D)",
        "(-{c})",
        "round({c}, 1)",
        "try_divide({x.alias}.i32, 4)",
        "sqrt(abs({c}))",
    ),
    "decimal": ("abs({c})", "try_add({c}, 1.5)", "cast({x.alias}.i8 AS decimal(5,2))", "(-{c})"),
    "text": (
        "upper({c})",
        "lower({c})",
        "concat({c}, '-')",
        "substring({c}, 1, 2)",
        "trim({c})",
        "cast({x.alias}.i32 AS string)",
        "cast({x.alias}.day AS string)",
        "cast({x.alias}.ts AS string)",
        "cast({x.alias}.d5 AS string)",
        "hex({x.alias}.bin)",
        "reverse({c})",
        "get({x.alias}.ss, 0)",
        "get({x.alias}.ps, 1).v",
        "{x.alias}.mm[1].b.v",
        "{x.alias}.sm.m['k1'].v",
        "cast({x.alias}.lapse AS string)",
        "cast({x.alias}.clock AS string)",
        "to_json({x.alias}.st)",
        "array_join({x.alias}.ss, ',')",
    ),
    "flag": ("({c} AND {x.alias}.bo)", "isnan({x.alias}.f64)", "array_contains({x.alias}.xs, 1)"),
    "day": ("cast({x.alias}.ts AS date)", "{x.alias}.mm[2].a", "last_day({c})"),
    "time": ("cast({x.alias}.day AS timestamp)", "date_trunc('DAY', {c})"),
    "local": ("cast({x.alias}.day AS timestamp_ntz)",),
    "lapse": ("({c} * 2)", "({x.alias}.ntz - TIMESTAMP_NTZ'1970-01-01 00:00:00')"),
    "bytes": ("cast({x.alias}.s AS binary)", "substring({c}, 1, 1)"),
}
_NESTED_TESTS = (
    "size({a}.xs) = 2",
    "array_contains({a}.xs, 7)",
    "exists({a}.xs, e -> e IS NULL)",
    "forall({a}.ss, e -> length(e) > 1)",
    "size(filter({a}.ps, p -> p.u > 0)) > 0",
    "{a}.m['k1'] = 42",
    "map_contains_key({a}.m, '')",
    "element_at({a}.mm, 1).b.u < 5",
    "{a}.mm[2] IS NULL",
    "{a}.sm.m['k2'].u IS NOT NULL",
    "{a}.st = named_struct('x', 7, 'y', 'a', 'z', {a}.st.z)",
    "{a}.st.z <=> NULL",
    "{a}.xs = array(1)",
    "{a}.xs < array(5)",
    "{a}.ss IN (array(''), array('a', 'b'))",
    "aggregate({a}.xs, 0L, (t, e) -> t + coalesce(e, 0)) > 3",
    "size(map_keys({a}.m)) = 1",
    "array_max({a}.xs) > 1",
    "get({a}.ps, 0).v LIKE 'a%'",
    "get({a}.ps.u, 0) = 1",
    "size({a}.st.z.w) > 0",
    "{a}.sm.d > 0 AND {a}.st.x IS NOT NULL",
    "size(flatten({a}.xx)) > 1",
)
