"""Names of the compiled module of pylance."""

from __future__ import annotations

from lancelake.pylance import lance, optimize, schema


def test_names_are_those_of_the_public_modules() -> None:
    assert lance.Compaction is optimize.Compaction
    assert lance.LanceSchema is schema.LanceSchema
    assert all(hasattr(lance, name) for name in lance.__all__)
