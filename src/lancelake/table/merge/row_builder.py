"""Build the rows that a merge writes from source and target columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import public_field
from lancelake.format.blobs import has_blobs
from lancelake.format.schema import Field, Schema
from lancelake.suggest import suggestion
from lancelake.table.merge.scope import SOURCE, TARGET, Scope, ScopedValue, Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The value of a column on one side."""

    side: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A null value."""


Ingredient = Copied | Missing | ScopedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The source of the value of each column of the table."""

    schema: pa.Schema
    ingredients: tuple[Ingredient, ...]

    def needs(self, side: str) -> tuple[str, ...]:
        """Return the columns of a side that a row needs."""
        found: dict[str, None] = {}
        for ingredient in self.ingredients:
            if isinstance(ingredient, ScopedValue):
                found.update(dict.fromkeys(ingredient.needs.get(side, ())))
            elif isinstance(ingredient, Copied) and ingredient.side == side:
                found[ingredient.column] = None
        return tuple(found)

    def only(self, names: Sequence[str]) -> Recipe:
        """Return the recipe restricted to some columns, in this order."""
        places = [self.schema.get_field_index(name) for name in names]
        return Recipe(
            schema=pa.schema([self.schema.field(i) for i in places]),
            ingredients=tuple(self.ingredients[i] for i in places),
        )

    def make(self, sides: Sides) -> pa.RecordBatch:
        """Build the rows."""
        rows = next(iter(sides.values())).num_rows
        arrays = [
            fitted(_value(ingredient, sides, rows), field)
            for ingredient, field in zip(self.ingredients, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def copied_from_source(
    schema: Schema, source: Sequence[str], *, otherwise: Ingredient | None
) -> Recipe:
    """Copy the columns that the source has; `otherwise` is used for the rest, None for target."""
    by_name = {name: name for name in source}
    ingredients = tuple(
        Copied(side=SOURCE, column=by_name[field.name])
        if field.name in by_name
        else otherwise or Copied(side=TARGET, column=field.name)
        for field in schema.fields
    )
    return Recipe(schema=output_schema(schema), ingredients=ingredients)


def computed(
    schema: Schema, values: Mapping[str, str], scope: Scope, *, otherwise: Ingredient | None
) -> Recipe:
    """Compute some columns; `otherwise` is used for the rest, None for the target's value."""
    unknown = [name for name in values if name not in schema.names]
    if unknown:
        problem = f"Column {unknown[0]!r} does not exist in the table"
        advice = suggestion(unknown[0], schema.names, "columns")
        raise InvalidRequestError(problem, column=unknown[0], action=advice)
    if not values:
        raise InvalidRequestError("No updates provided", action="Set at least one column.")
    ingredients = tuple(
        _computed(scope, values[field.name], field)
        if field.name in values
        else otherwise or Copied(side=TARGET, column=field.name)
        for field in schema.fields
    )
    return Recipe(schema=output_schema(schema), ingredients=ingredients)


def _computed(scope: Scope, text: str, field: Field) -> Ingredient:
    target = cast_target(field)
    # Expressions see the descriptor of a blob, not its value.
    column = None if has_blobs(field) else scope.column(text, target)
    if column is None:
        return scope.value(text, target)
    side, name = column
    return Copied(side=side, column=name)


def output_schema(schema: Schema) -> pa.Schema:
    """Return the schema of rows passed to the writer, which checks for nulls."""
    return pa.schema([public_field(field).with_nullable(True) for field in schema.fields])


def cast_target(field: Field) -> pa.DataType | None:
    """Return the type to which a computed value is cast; None if the writer converts it."""
    found = public_field(field).type
    if isinstance(found, pa.BaseExtensionType) or field.is_json:
        return None
    return found.value_type if pa.types.is_dictionary(found) else found


def fitted(array: pa.Array, field: pa.Field) -> pa.Array:
    """Cast an array to the type of a field."""
    target = field.type
    if array.type.equals(target):
        return array
    try:
        if isinstance(target, pa.BaseExtensionType):
            storage = array.storage if isinstance(array, pa.ExtensionArray) else array
            return pa.ExtensionArray.from_storage(target, fitted_storage(storage, target))
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(target):
            array = array.dictionary_decode()
        if pa.types.is_dictionary(target) and not pa.types.is_dictionary(array.type):
            array = array.cast(target.value_type).dictionary_encode()
        return array.cast(target)
    except (pa.ArrowException, NotImplementedError) as error:
        problem = f"Can't cast values of column {field.name} to type {target}: {error}"
        raise SchemaMismatchError(
            problem, path=field.name, expected=str(target), found=str(array.type)
        ) from error


def fitted_storage(storage: pa.Array, target: pa.BaseExtensionType) -> pa.Array:
    """Cast an array to the storage type of an extension type."""
    return (
        storage if storage.type.equals(target.storage_type) else storage.cast(target.storage_type)
    )


def _value(ingredient: Ingredient, sides: Sides, rows: int) -> pa.Array:
    if isinstance(ingredient, Copied):
        return sides[ingredient.side].column(ingredient.column)
    if isinstance(ingredient, Missing):
        return pa.nulls(rows)
    return ingredient.of(sides)
