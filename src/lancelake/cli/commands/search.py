"""Search by text, by vector, or by both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
import typer

from lancelake.cli import options
from lancelake.cli.console import RowFormat
from lancelake.cli.rows import print_rows
from lancelake.core.values import reads

if TYPE_CHECKING:
    from lancelake.core.table import Table

commands = options.CommandModule()

_MOST_ROW_ID = (1 << 64) - 2
_VECTOR_OPTIONS = "'--metric', '--nprobes', '--refine-factor', '--vector-column'"

Query = Annotated[
    str | None,
    options.argument("TEXT", "Words to search for, any of them; a phrase in double quotes."),
]
Count = Annotated[int, typer.Option("-k", min=1, help="Number of rows.")]
Where = Annotated[
    str | None,
    options.option("--where", "SQL", "Search only rows that match this condition.", short="-w"),
]
TextColumns = Annotated[
    str | None,
    options.option(
        "--text-columns",
        "A,B",
        "Columns to search for the text. By default, all with a text index.",
    ),
]
Vector = Annotated[
    str | None,
    options.option(
        "--vector", "@FILE|X,Y,...", "Query vector: a .npy file, or numbers separated by commas."
    ),
]
Like = Annotated[
    int | None,
    options.option(
        "--like", "ROWID", "Use the vector of this row as the query.", min=0, max=_MOST_ROW_ID
    ),
]
VectorColumn = Annotated[
    str | None,
    options.option(
        "--vector-column", "COLUMN", "The vector column. By default, the only one of the table."
    ),
]
Probes = Annotated[
    int | None,
    options.option("--nprobes", "N", "Number of partitions of the index to search.", min=1),
]
VectorWeight = Annotated[
    float | None,
    options.option(
        "--vector-weight",
        "W",
        "Fuse by weighted scores instead of ranks: W for the vector, 1 - W for the text.",
        min=0.0,
        max=1.0,
    ),
]


@commands.add(example="photos.lance 'harbour' -k 3")
def search(
    version: options.Version,
    text: Query = None,
    k: Count = reads.DEFAULT_K,
    where: Where = None,
    columns: options.Columns = None,
    text_columns: TextColumns = None,
    vector: Vector = None,
    like: Like = None,
    vector_column_name: VectorColumn = None,
    metric: options.Metric = None,
    nprobes: Probes = None,
    refine_factor: options.RefineFactor = None,
    vector_weight: VectorWeight = None,
    no_index: options.NoIndex = False,
    output: options.RowOutput = RowFormat.TABLE,
) -> None:
    """Search by text, by vector, or by both, and show the best rows with their scores."""
    table = version.open()
    nearest = _nearest(table, vector, like, vector_column_name)
    if nearest is not None:
        nearest = replace(
            nearest,
            metric=None if metric is None else reads.metric_named(metric),
            minimum_nprobes=nprobes,
            maximum_nprobes=nprobes,
            refine_factor=refine_factor,
            use_index=not no_index,
        )
    elif any(each is not None for each in (metric, nprobes, refine_factor, vector_column_name)):
        problem = "these options need a query vector; specify --vector or --like"
        raise typer.BadParameter(problem, param_hint=_VECTOR_OPTIONS)
    words = (
        None
        if text is None
        else reads.words_query(text, options.column_names(text_columns, "--text-columns"))
    )
    request = reads.SearchRequest(
        nearest=nearest,
        text=words,
        k=k,
        filter=where if like is None else reads.other_rows(where, like),
        columns=options.column_names(columns),
        with_row_id=True,
        fusion=reads.fusion_of(vector_weight),
        use_scalar_index=not no_index,
    )
    print_rows(table.search(request), table.snapshot, output)


def _nearest(
    table: Table, vector: str | None, like: int | None, column: str | None
) -> reads.Nearest | None:
    if vector is not None and like is not None:
        problem = "--vector and --like are two query vectors; specify only one"
        raise typer.BadParameter(problem, param_hint="'--like'")
    if vector is None and like is None:
        return None
    path = table.vector_column(column)
    if like is not None:
        return table.nearest_to_row(path, like)
    return reads.Nearest(column=path, queries=_vector(vector or ""))


def _vector(text: str) -> npt.NDArray[np.float32]:
    """Read a vector from a file, or from its numbers."""
    try:
        if text.startswith("@"):
            values = np.load(Path(text[1:]), allow_pickle=False)
        else:
            values = np.array([float(part) for part in text.split(",")])
        vector: npt.NDArray[np.float32] = np.asarray(values, dtype=np.float32)
    except OSError as error:
        problem = f"{text[1:]} cannot be read: {error.strerror or error}"
        raise typer.BadParameter(problem, param_hint="'--vector'") from error
    except (TypeError, ValueError) as error:
        problem = f"{text!r} is neither @FILE of a NumPy array nor numbers separated by commas"
        raise typer.BadParameter(problem, param_hint="'--vector'") from error
    if vector.ndim == 0 or vector.size != vector.shape[-1]:
        problem = f"a query is one vector, not an array of shape {vector.shape}"
        raise typer.BadParameter(problem, param_hint="'--vector'")
    return vector.reshape(1, -1)
