"""Random queries and statements in Spark's SQL, from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

INTEGERS = ("id", "i", "l", "k", "h", "st.x", "st.z.q")
LITERALS: dict[str, tuple[str, ...]] = {
    "id": ("0", "7", "200", "399"),
    "i": ("0", "1", "-1", "7", "42", "2147483647", "NULL"),
    "l": ("0", "5", "99", "1099511627776", "-1099511627776"),
    "k": ("-3", "0", "4"),
    "h": ("1", "20", "-7"),
    "st.x": ("0", "50", "300"),
    "st.z.q": ("0", "3", "NULL"),
    "d": ("0.0D", "-0.0D", "1.5D", "double('NaN')", "double('Infinity')", "1e300D"),
    "f": ("float(0)", "float(0.1)", "float(1.5)"),
    "n": ("0.00", "12345678.91", "-0.01", "NULL"),
    "s": ("''", "'a'", "'abc'", "'zürich'", "'a%c'", "NULL"),
    "st.y": ("'abc'", "'z'", "''"),
    "day": ("DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'0001-01-01'"),
    "t": ("TIMESTAMP'1970-01-01 00:00:00'", "TIMESTAMP'2024-02-29 12:30:15.123456'"),
    "w": ("TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-02-29 12:30:15'"),
    "b": ("X''", "X'00'", "X'FF00'"),
    "ok": ("true", "false", "NULL"),
}
"""Columns with literals of their types."""

COLUMNS = tuple(LITERALS)
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_GROUPED = ("s", "ok", "day", "k", "st.y", "i", "n", "d")


@dataclass(frozen=True)
class RandomSql:
    """A source of random SQL on the table `t`, and the table `u` of a few of its columns."""

    chance: random.Random

    def condition(self, depth: int = 2, alias: str = "") -> str:
        """Return a condition on the columns of one table."""
        if depth == 0 or self.chance.random() < 0.25:
            return self._leaf(alias)
        one, two = self.condition(depth - 1, alias), self.condition(depth - 1, alias)
        form = self.chance.choice(
            ["({} AND {})", "({} OR {})", "(({}) <=> ({}))", "(NOT {})", "coalesce({}, {})"]
        )
        return form.format(one, two)

    def query(self) -> str:
        """Return a query whose rows do not depend on their order."""
        forms = (
            self._plain,
            self._aggregate,
            self._grouped,
            self._top,
            self._join,
            self._subquery,
            self._window,
            self._union,
        )
        return self.chance.choice(forms)()

    def value(self, column: str) -> str:
        """Return an expression of the type of a column."""
        literal = self.chance.choice(LITERALS[column])
        forms = [literal, column, f"coalesce({column}, {literal})"]
        forms.append(f"CASE WHEN {self._leaf()} THEN {literal} ELSE {column} END")
        return self.chance.choice(forms)

    def _leaf(self, alias: str = "") -> str:
        name = self.chance.choice(COLUMNS)
        column, literals = alias + name, LITERALS[name]
        literal = self.chance.choice(literals)
        listed = ", ".join(self.chance.sample(literals, min(2, len(literals))))
        comparison = self.chance.choice(_COMPARISONS)
        forms = [
            f"{column} {comparison} {literal}",
            f"{literal} {comparison} {column}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"{column} IN ({listed})",
            f"{column} NOT IN ({listed})",
        ]
        if name in ("s", "st.y"):
            pattern = self.chance.choice(["a%", "%c", "%b%", "a_c", "%", "a\\\\%c"])
            forms += [f"{column} LIKE '{pattern}'", f"length({column}) > 2"]
        if name in INTEGERS:
            other = self.chance.choice(INTEGERS)
            forms += [f"{column} {comparison} {alias}{other}", f"NOT cast({column} AS boolean)"]
            forms += [f"{column} % 3 = 1"]
        if name == "ok":
            forms += [column, f"NOT {column}"]
        return self.chance.choice(forms)

    def _columns(self, count: int) -> list[str]:
        return self.chance.sample(COLUMNS, count)

    def _plain(self) -> str:
        columns = ", ".join(self._columns(3))
        distinct = self.chance.choice(["", "DISTINCT "])
        return f"SELECT {distinct}{columns} FROM t WHERE {self.condition()}"

    def _function(self) -> str:
        number = self.chance.choice(["i", "k", "h", "id", "n", "st.x"])
        name = self.chance.choice(COLUMNS)
        forms = [
            "count(*)",
            f"count({name})",
            f"count(DISTINCT {name})",
            f"min({name})",
            f"max({name})",
            f"sum({number})",
            f"avg({number})",
            f"sum({number}) FILTER (WHERE {self._leaf()})",
            f"count(CASE WHEN {self._leaf()} THEN 1 END)",
        ]
        return self.chance.choice(forms)

    def _aggregate(self) -> str:
        functions = ", ".join(self._function() for _ in range(self.chance.randint(1, 4)))
        return f"SELECT {functions} FROM t{self._where()}"

    def _grouped(self) -> str:
        keys = ", ".join(self.chance.sample(_GROUPED, self.chance.randint(1, 2)))
        functions = ", ".join(self._function() for _ in range(self.chance.randint(1, 3)))
        having = self.chance.choice(["", " HAVING count(*) > 3"])
        return f"SELECT {keys}, {functions} FROM t{self._where()} GROUP BY {keys}{having}"

    def _top(self) -> str:
        order = ", ".join(
            f"{column} {self.chance.choice(['', 'ASC NULLS LAST', 'DESC', 'DESC NULLS FIRST'])}"
            for column in self._columns(2)
        )
        limit, offset = self.chance.choice([1, 7, 50]), self.chance.choice(["", " OFFSET 3"])
        columns = ", ".join(["id", *self._columns(2)])
        return f"SELECT {columns} FROM t{self._where()} ORDER BY {order}, id LIMIT {limit}{offset}"

    def _join(self) -> str:
        kind = self.chance.choice(
            ["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        )
        key = self.chance.choice(["i", "k", "s", "id", "ok AND a.k = b.k"]).partition(" AND ")
        more = f" AND {key[2]}" if key[2] else ""
        right = "" if "SEMI" in kind or "ANTI" in kind else ", count(b.id), max(b.s)"
        where = "" if kind == "FULL JOIN" else f" WHERE {self.condition(1, 'a.')}"
        small = f"(SELECT * FROM u WHERE {self.condition(1)})"
        return (
            f"SELECT count(*), sum(a.id){right} FROM t a {kind} {small} b "
            f"ON a.{key[0]} = b.{key[0]}{more}{where}"
        )

    def _subquery(self) -> str:
        column = self.chance.choice(["i", "k", "s", "id"])
        word = self.chance.choice(["IN", "NOT IN"])
        inner = f"SELECT {column} FROM u WHERE {column} IS NOT NULL AND {self.condition(1)}"
        return f"SELECT id, {column} FROM t WHERE {column} {word} ({inner}) AND {self.condition(1)}"

    def _window(self) -> str:
        key = self.chance.choice(_GROUPED)
        call = self.chance.choice(["row_number()", "sum(k)", "count(*)", "lag(i)"])
        over = f"OVER (PARTITION BY {key} ORDER BY id)"
        return f"SELECT id, {call} {over} FROM t{self._where()}"

    def _union(self) -> str:
        columns = ", ".join(self._columns(2))
        word = self.chance.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        one, two = self.condition(1), self.condition(1)
        return f"SELECT {columns} FROM t WHERE {one} {word} SELECT {columns} FROM u WHERE {two}"

    def _where(self) -> str:
        return self.chance.choice(["", f" WHERE {self.condition()}"])


@dataclass(frozen=True)
class Change:
    """A statement on a table, and queries that return the rows that it leaves."""

    statement: str
    left: str


def random_change(sql: RandomSql, table: str, columns: Sequence[str]) -> Change:
    """Return a statement on `table`, whose rows before are in the view `m`."""
    chance, condition = sql.chance, sql.condition(2)
    changed = chance.choice([c for c in columns if c in LITERALS and c != "id"])
    first = chance.randint(0, 400)
    every = ", ".join(columns)
    match chance.choice(["delete", "update", "insert", "merge", "replace"]):
        case "delete":
            kept = f"SELECT * FROM m WHERE NOT coalesce({condition}, false)"
            return Change(f"DELETE FROM {table} WHERE {condition}", kept)
        case "update":
            value = sql.value(changed)
            new = f"CASE WHEN {condition} THEN {value} ELSE {changed} END AS {changed}"
            kept = f"SELECT {every.replace(f', {changed},', f', {new},')} FROM m"
            return Change(f"UPDATE {table} SET {changed} = {value} WHERE {condition}", kept)
        case "insert":
            rows = f"SELECT * FROM t WHERE id BETWEEN {first} AND {first + 20}"
            return Change(f"INSERT INTO {table} {rows}", f"SELECT * FROM m UNION ALL {rows}")
        case "replace":
            rows = f"SELECT * FROM t WHERE id < {first} AND i = 7"
            kept = f"SELECT * FROM m WHERE NOT coalesce(i = 7, false) UNION ALL {rows}"
            return Change(f"INSERT INTO {table} REPLACE WHERE i = 7 {rows}", kept)
        case _:
            return _merge(table, columns, changed, condition=sql.condition(1, "s."), first=first)


def _merge(
    table: str, columns: Sequence[str], changed: str, *, condition: str, first: int
) -> Change:
    source = f"(SELECT * FROM t WHERE id BETWEEN {first} AND {first + 50})"
    statement = f"""
        MERGE INTO {table} x USING {source} s ON x.id = s.id
        WHEN MATCHED AND {condition} THEN DELETE
        WHEN MATCHED THEN UPDATE SET x.{changed} = s.{changed}
        WHEN NOT MATCHED THEN INSERT *"""
    every = ", ".join(
        f"CASE WHEN s.id IS NULL THEN x.{c} ELSE s.{c} END AS {c}" if c == changed else f"x.{c}"
        for c in columns
    )
    kept = f"""
        SELECT {every} FROM m x LEFT JOIN {source} s ON x.id = s.id
        WHERE s.id IS NULL OR NOT coalesce({condition}, false)
        UNION ALL SELECT s.* FROM {source} s LEFT ANTI JOIN m x ON x.id = s.id"""
    return Change(statement, kept)
