"""Whole queries by chance: a seed makes the same query every time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.spark.corpus.expressions import SCALARS, Expressions

_SORTED = tuple(kind for kind in SCALARS if kind != "lapse")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_HINTS = ("", "/*+ BROADCAST(b) */ ", "/*+ MERGE(a, b) */ ", "/*+ SHUFFLE_HASH(b) */ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SQL about the tables `{t}`, `{u}` and `{old}`, and how its answers may be compared.

    `ordered` answers come in one order only; `exact` ones have no sum of floating-point numbers,
    which depends on the order in which tasks end.
    """

    sql: str
    ordered: bool = False
    exact: bool = True


def query(seed: int) -> Query:
    """Return the query that a seed makes."""
    return _Maker(random.Random(seed)).query()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._random = chance
        self._a = Expressions(chance)
        self._b = Expressions(chance, "b")

    def query(self) -> Query:
        shapes: tuple[tuple[int, Callable[[], Query]], ...] = (
            (6, self._filtered),
            (3, self._projected),
            (3, self._aggregated),
            (4, self._grouped),
            (2, self._grouping_sets),
            (4, self._joined),
            (2, self._joined_with_itself),
            (3, self._first),
            (2, self._combined),
            (2, self._subquery),
            (1, self._common_table),
            (2, self._window),
            (1, self._distinct),
            (1, self._counted),
            (1, self._exploded),
            (1, self._older),
        )
        weights = [weight for weight, _ in shapes]
        return self._random.choices([make for _, make in shapes], weights)[0]()

    def _where(self, depth: int = 2) -> str:
        return f"WHERE {self._a.condition(depth)}"

    def _maybe_where(self) -> str:
        return self._where(1) if self._random.random() < 0.5 else ""

    def _outputs(self, most: int = 4) -> str:
        count = self._random.randint(1, most)
        values = [self._a.any_column() for _ in range(count)]
        return ", ".join(f"{name} AS c{i}" for i, name in enumerate(values))

    def _filtered(self) -> Query:
        wanted = self._random.choice(("a.id", "*", f"a.id, {self._outputs()}", "1 AS one"))
        return Query(sql=f"SELECT {wanted} FROM {{t}} a {self._where(3)}")

    def _projected(self) -> Query:
        kinds = [self._random.choice(SCALARS) for _ in range(self._random.randint(1, 4))]
        values = [f"{self._a.value(kind, 3)} AS c{i}" for i, kind in enumerate(kinds)]
        return Query(sql=f"SELECT {', '.join(values)} FROM {{t}} a {self._maybe_where()}")

    def _function(self) -> tuple[str, bool]:
        """Return an aggregate, and whether it is exact."""
        kind = self._random.choice(SCALARS)
        column = self._a.column(kind) if self._random.random() < 0.7 else self._a.value(kind, 2)
        values = ["count({c})", "count(DISTINCT {c})", "count(*)"]
        values += ["min({c})", "max({c})"] * 2
        if kind in ("whole", "decimal", "float"):
            # Whether a sum of large values overflows on the way depends on their order.
            small = "try_cast({c} AS decimal(20, 4))"
            values += [
                f"try_sum({small})",
                f"try_avg({small})",
                "sum(DISTINCT cast({c} AS double))",
            ]
            values += ["sum(a.i32)", "sum(a.d5)", "avg(a.i16)", "sum(a.f64)", "avg(a.d5)"]
        if kind == "flag":
            values += ["bool_and({c})", "bool_or({c})", "count_if({c})"]
        text = self._random.choice(values).format(c=column)
        if self._random.random() < 0.15:
            text += f" FILTER (WHERE {self._a.condition(1)})"
        # Of two zeros that are equal either is the smallest.
        is_tied = kind == "float" and text.startswith(("min", "max"))
        return text, "sum" not in text and "avg" not in text and not is_tied

    def _functions(self) -> tuple[str, bool]:
        values = [self._function() for _ in range(self._random.randint(1, 4))]
        names = ", ".join(f"{text} AS v{i}" for i, (text, _) in enumerate(values))
        return names, all(exact for _, exact in values)

    def _aggregated(self) -> Query:
        functions, exact = self._functions()
        return Query(sql=f"SELECT {functions} FROM {{t}} a {self._maybe_where()}", exact=exact)

    def _keys(self) -> list[str]:
        kinds = [self._random.choice(SCALARS) for _ in range(self._random.randint(1, 2))]
        plain = self._random.random() < 0.7
        return [self._a.column(kind) if plain else self._a.value(kind, 1) for kind in kinds]

    def _grouped(self) -> Query:
        functions, exact = self._functions()
        keys = self._keys()
        shown = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
        having = self._random.choice(("", "", "HAVING count(*) > 2", "HAVING max(a.id) > 100"))
        grouped = f"GROUP BY {', '.join(keys)} {having}"
        sql = f"SELECT {shown}, {functions} FROM {{t}} a {self._maybe_where()} {grouped}"
        return Query(sql=sql, exact=exact)

    def _grouping_sets(self) -> Query:
        functions, exact = self._functions()
        first, second = (self._a.column(kind) for kind in self._random.sample(SCALARS, 2))
        how = self._random.choice(
            ("ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({0}, {1}), ())")
        ).format("g1", "g2")
        inner = f"SELECT *, {first} AS g1, {second} AS g2 FROM {{t}} a {self._maybe_where()}"
        sql = f"SELECT g1, g2, {functions} FROM ({inner}) a GROUP BY {how}"
        return Query(sql=sql, exact=exact)

    def _joined(self) -> Query:
        join, hint = self._random.choice(_JOINS), self._random.choice(_HINTS)
        on = self._random.choice(("a.i32 = b.k", "a.i16 = b.k", "a.s = b.name", "a.st.x = b.k"))
        if self._random.random() < 0.4:
            on += self._random.choice((" AND b.g = 'a'", " AND a.id > 50", " AND a.f64 < b.w"))
        right = "" if "SEMI" in join or "ANTI" in join else ", b.k, b.name"
        where = self._random.choice(("", "WHERE a.id % 3 = 0", self._where(1)))
        small = self._random.choice(("{u}", "(SELECT * FROM {u} WHERE g = 'b')"))
        sql = f"SELECT {hint}a.id, a.s{right} FROM {{t}} a {join} {small} b ON {on} {where}"
        return Query(sql=sql)

    def _joined_with_itself(self) -> Query:
        kind = self._random.choice(("whole", "text", "day", "decimal", "time", "bytes", "local"))
        join = self._random.choice(_JOINS[:4])
        column = self._a.column(kind)
        on = f"{column} = {column.replace('a.', 'b.', 1)} AND a.id % 5 = b.id % 5"
        inner = self._random.choice(
            ("{t}", f"(SELECT * FROM {{t}} b WHERE {self._b.condition(1)})")
        )
        cross = f"SELECT count(*) FROM {{t}} a CROSS JOIN {{u}} b {self._where(1)}"
        if self._random.random() < 0.15:
            return Query(sql=cross)
        return Query(sql=f"SELECT a.id AS l, b.id AS r FROM {{t}} a {join} {inner} b ON {on}")

    def _order(self) -> str:
        kinds = [self._random.choice(_SORTED) for _ in range(self._random.randint(1, 2))]
        keys = [
            " ".join(
                (
                    self._a.column(kind) if self._random.random() < 0.8 else self._a.value(kind),
                    self._random.choice(("ASC", "DESC", "")),
                    self._random.choice(("NULLS FIRST", "NULLS LAST", "")),
                )
            )
            for kind in kinds
        ]
        return f"ORDER BY {', '.join([*keys, 'a.id'])}"

    def _first(self) -> Query:
        limit = self._random.choice((0, 1, 3, 10, 50, 1000))
        skip = f" OFFSET {self._random.choice((1, 5, 40))}" if self._random.random() < 0.4 else ""
        wanted = self._random.choice(("a.id", f"a.id, {self._outputs()}", "*"))
        last = self._random.choice((f"LIMIT {limit}{skip}", f"LIMIT {limit}", skip))
        sql = f"SELECT {wanted} FROM {{t}} a {self._maybe_where()} {self._order()} {last}"
        return Query(sql=sql, ordered=True)

    def _combined(self) -> Query:
        word = self._random.choice(
            ("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
        )
        kind = self._random.choice(SCALARS)
        first, second = self._a.column(kind), self._a.value(kind)
        left = f"SELECT {first} AS c FROM {{t}} a {self._maybe_where()}"
        return Query(sql=f"{left} {word} SELECT {second} AS c FROM {{t}} a {self._maybe_where()}")

    def _subquery(self) -> Query:
        inner = self._b.condition(1)
        shapes = (
            f"a.id > (SELECT avg(b.id) FROM {{t}} b WHERE {inner})",
            "EXISTS (SELECT 1 FROM {u} u WHERE u.k = a.i32 AND u.g = 'a') AND "
            + self._a.condition(1),
            f"NOT EXISTS (SELECT 1 FROM {{t}} b WHERE b.id = a.i32 AND {inner})",
            f"a.i32 IN (SELECT b.id FROM {{t}} b WHERE {inner})",
            "a.i32 NOT IN (SELECT u.k FROM {u} u WHERE u.k IS NOT NULL) OR " + self._a.condition(0),
            "a.s NOT IN (SELECT u.name FROM {u} u WHERE u.g = 'c')",
            f"a.d5 = (SELECT max(b.d5) FROM {{t}} b WHERE {inner})",
            f"a.id <= (SELECT count(*) FROM {{t}} b WHERE b.i32 = a.i32 AND {inner})",
        )
        where = self._random.choice(shapes)
        return Query(sql=f"SELECT a.id FROM {{t}} a WHERE {where}")

    def _common_table(self) -> Query:
        kind = self._random.choice(SCALARS)
        column = self._a.column(kind)
        first = f"x AS (SELECT a.id, {column} AS c, a.i32 FROM {{t}} a {self._where(1)})"
        second = "y AS (SELECT c, count(*) AS n, min(id) AS low FROM x GROUP BY c)"
        sql = f"WITH {first}, {second} SELECT x.id, y.n, y.low FROM x JOIN y ON x.c <=> y.c"
        return Query(sql=sql)

    def _window(self) -> Query:
        key, kind = self._random.choice(SCALARS), self._random.choice(_SORTED)
        function = self._random.choice(
            (
                "row_number()",
                "rank()",
                "count(*)",
                "max(a.i32)",
                "lag(a.id)",
                "last_value(a.s)",
                "sum(a.i32)",
                "ntile(3)",
            )
        )
        order = f"ORDER BY {self._a.column(kind)}, a.id"
        over = f"{function} OVER (PARTITION BY {self._a.column(key)} {order}) AS v"
        sql = f"SELECT a.id, {over} FROM {{t}} a {self._maybe_where()}"
        if function == "row_number()" and self._random.random() < 0.5:
            sql = f"SELECT * FROM ({sql}) WHERE v <= 2"
        return Query(sql=sql)

    def _distinct(self) -> Query:
        kinds = self._random.sample(SCALARS, 2)
        names = ", ".join(f"{self._a.column(kind)} AS c{i}" for i, kind in enumerate(kinds))
        return Query(sql=f"SELECT DISTINCT {names} FROM {{t}} a {self._maybe_where()}")

    def _counted(self) -> Query:
        limit = self._random.choice((0, 1, 17, 1000))
        skip = self._random.choice(("", " OFFSET 5"))
        inner = f"SELECT {self._outputs()} FROM {{t}} a {self._maybe_where()} LIMIT {limit}{skip}"
        return Query(sql=f"SELECT count(*) FROM ({inner})")

    def _exploded(self) -> Query:
        what = self._random.choice(
            (
                "SELECT a.id, e FROM {t} a LATERAL VIEW explode(a.xs) AS e",
                "SELECT a.id, p, e.v FROM {t} a LATERAL VIEW OUTER posexplode(a.ps) AS p, e",
                "SELECT a.id, k, v FROM {t} a LATERAL VIEW explode(a.m) AS k, v",
                "SELECT a.id, k, v.b.u FROM {t} a LATERAL VIEW explode(a.mm) AS k, v",
                "SELECT a.id, k, v.u FROM {t} a LATERAL VIEW explode(a.sm.m) AS k, v",
                "SELECT a.id, f FROM {t} a LATERAL VIEW explode(flatten(a.xx)) AS f",
            )
        )
        return Query(sql=f"{what} {self._maybe_where()}")

    def _older(self) -> Query:
        shapes = (
            "SELECT * FROM {old} a {w}",
            "SELECT count(*), max(a.id), min(a.s) FROM {old} a {w}",
            "SELECT a.id, b.i32 FROM {t} a JOIN {old} b ON a.id = b.id {w}",
            "SELECT a.id FROM {old} a {w} EXCEPT SELECT id FROM {t}",
        )
        where = f"WHERE {self._a.condition(1)}".replace("a.late", "a.i64")
        text = self._random.choice(shapes)
        return Query(sql=text.replace("{w}", where))
