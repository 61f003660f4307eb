"""Convert constraints and clustering columns between Spark's Java objects and our values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lancelake.errors import UnsupportedError
from lancelake.format.schema import Schema
from lancelake.spark.catalog.key_constraint import PrimaryKey, primary_key
from lancelake.spark.jvm.catalyst import seq
from lancelake.spark.jvm.gateway import Gateway

_CLUSTER_BY = "cluster_by"


def primary_key_of(constraints: Iterable[Any]) -> PrimaryKey | None:
    """Return the primary key among constraints; other constraints are refused."""
    found: PrimaryKey | None = None
    for constraint in constraints:
        found = constraint_key(constraint)
    return found


def constraint_key(constraint: Any) -> PrimaryKey:
    """Convert a primary key; another constraint is refused."""
    kind = str(constraint.getClass().getSimpleName())
    if kind != "PrimaryKey":
        raise UnsupportedError(
            f"constraint {constraint.name()} is not supported: a Lance table has no place for "
            f"{constraint.toDDL()}, and rows written outside of SQL would not be checked",
            action="Only PRIMARY KEY constraints are supported.",
        )
    columns = tuple(".".join(reference.fieldNames()) for reference in constraint.columns())
    return PrimaryKey(name=str(constraint.name()), columns=columns)


def java_constraints(gateway: Gateway, schema: Schema) -> Any:
    """Return the constraints of a table as Java objects."""
    kind = gateway.connector("catalog.constraints.Constraint")
    key = primary_key(schema)
    if key is None:
        return gateway.once("no constraints", lambda: gateway.array(kind, []))
    references = _references(gateway, [[name] for name in key.columns])
    made = kind.primaryKey(key.name, gateway.array(_reference_class(gateway), references))
    return gateway.array(kind, [made.enforced(False).build()])


def clustering_of(transforms: Iterable[Any]) -> list[list[str]]:
    """Return the clustering columns among transforms; partitioning is refused."""
    found: list[list[str]] = []
    for transform in transforms:
        if transform.name() != _CLUSTER_BY:
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit PARTITIONED BY, or use CLUSTER BY.")
        found += [list(reference.fieldNames()) for reference in transform.references()]
    return found


def java_clustering(gateway: Gateway, columns: Sequence[Sequence[str]]) -> Any:
    """Return clustering columns as an array of transforms."""
    kind = gateway.connector("expressions.Transform")
    if not columns:
        return gateway.once("no transforms", lambda: gateway.array(kind, []))
    make = gateway.connector("expressions.ClusterByTransform")
    return gateway.array(kind, [make(seq(gateway, _references(gateway, columns)))])


def _references(gateway: Gateway, paths: Iterable[Sequence[str]]) -> list[Any]:
    make = gateway.connector("expressions.FieldReference")
    return [make(seq(gateway, list(path))) for path in paths]


def _reference_class(gateway: Gateway) -> Any:
    return gateway.connector("expressions.NamedReference")
