"""Search procedures: `CALL lance.system.vector_search(...)`, `text_search` and `hybrid_search`."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.format.column_path import comma_parts
from lancelake.scan.search.fusion import fusion_of
from lancelake.scan.search.request import SearchRequest, vector_column, words_query
from lancelake.spark.catalog.procedures import Arguments, Parameter, known
from lancelake.spark.catalog.result_rows import TEXT, WHOLE
from lancelake.spark.options.table_options import TableOptions, open_version
from lancelake.spark.search.queries import nearest_of, one_vector
from lancelake.spark.search.results import searched_frame

_NUMBER = t.DoubleType()


def add_search_procedures() -> None:
    """Register the search procedures; their results have the columns of the table and scores."""
    vector = Parameter(name="vector", dtype=t.ArrayType(_NUMBER))
    text = Parameter(name="text", dtype=TEXT)
    every = (_optional("columns"), _optional("filter"), _optional("freshness"))
    near = (
        _optional("vector_column"),
        _optional("metric"),
        _optional("nprobes", WHOLE),
        _optional("refine_factor", WHOLE),
    )
    words = (_optional("text_columns"),)
    k = _optional("k", WHOLE, "10")
    known("vector_search", "returns the nearest rows", None, _search, vector, k, *every, *near)
    known("text_search", "returns rows with a text", None, _search, text, k, *every, *words)
    known(
        "hybrid_search",
        "returns the best rows of a text search and a vector search",
        None,
        _search,
        text,
        vector,
        k,
        *every,
        *near,
        *words,
        _optional("vector_weight", _NUMBER),
    )


def _search(spark: SparkSession, table: TableOptions, given: Arguments) -> DataFrame:
    base = open_version(table)
    text, vector, k = given.get("text"), given.get("vector"), given["k"]
    nearest = None
    if vector is not None:
        nearest = nearest_of(
            vector_column(base, given["vector_column"]),
            one_vector(vector),
            k,
            metric=given["metric"],
            nprobes=given["nprobes"],
            refineFactor=given["refine_factor"],
        )
    request = SearchRequest(
        nearest=nearest,
        text=None if text is None else words_query(text, _names(given["text_columns"])),
        k=k,
        filter=given["filter"],
    )
    if request.is_hybrid:
        request = replace(request, fusion=fusion_of(given["vector_weight"]))
    return searched_frame(spark, base, request, _names(given["columns"]), given["freshness"])


def _names(text: str | None) -> list[str] | None:
    return None if text is None else list(comma_parts(text))


def _optional(name: str, dtype: t.DataType = TEXT, default: str = "NULL") -> Parameter:
    return Parameter(name=name, dtype=dtype, default=default)
