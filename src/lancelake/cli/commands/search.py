"""`lancelake search`: search by text, by vector, or by both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat
from lancelake.cli.options import (
    At,
    Columns,
    Metric,
    NoIndex,
    RefineFactor,
    RowOutput,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.row_view import print_rows
from lancelake.commit.snapshot import Snapshot
from lancelake.index.vector.metric import metric_named
from lancelake.scan.nearest import DEFAULT_K, Nearest
from lancelake.scan.search.fusion import fusion_of
from lancelake.scan.search.request import (
    SearchRequest,
    other_rows,
    vector_column,
    words_query,
)
from lancelake.scan.search.run import search as search_rows
from lancelake.scan.search.stored_vectors import nearest_to_row

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_ROW_ID = (1 << 64) - 2
_VECTOR_OPTIONS = "'--metric', '--nprobes', '--refine-factor', '--vector-column'"

Query = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        show_default=False,
        help="Words to search for, any of them; a phrase in double quotes.",
    ),
]
Count = Annotated[int, typer.Option("-k", min=1, help="Number of rows.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        "-w",
        metavar="SQL",
        show_default=False,
        help="Search only rows that match this condition.",
    ),
]
TextColumns = Annotated[
    str | None,
    typer.Option(
        "--text-columns",
        metavar="A,B",
        show_default=False,
        help="Columns to search for the text. By default, all with a text index.",
    ),
]
Vector = Annotated[
    str | None,
    typer.Option(
        "--vector",
        metavar="@FILE|X,Y,...",
        show_default=False,
        help="Query vector: a .npy file, or numbers separated by commas.",
    ),
]
Like = Annotated[
    int | None,
    typer.Option(
        "--like",
        metavar="ROWID",
        min=0,
        max=_MOST_ROW_ID,
        show_default=False,
        help="Use the vector of this row as the query.",
    ),
]
VectorColumn = Annotated[
    str | None,
    typer.Option(
        "--vector-column",
        metavar="COLUMN",
        show_default=False,
        help="The vector column. By default, the only one of the table.",
    ),
]
Probes = Annotated[
    int | None,
    typer.Option(
        "--nprobes",
        metavar="N",
        min=1,
        show_default=False,
        help="Number of partitions of the index to search.",
    ),
]
VectorWeight = Annotated[
    float | None,
    typer.Option(
        "--vector-weight",
        metavar="W",
        min=0.0,
        max=1.0,
        show_default=False,
        help="Fuse by weighted scores instead of ranks: W for the vector, 1 - W for the text.",
    ),
]


@app.command()
def search(
    uri: Uri,
    text: Query = None,
    k: Count = DEFAULT_K,
    where: Where = None,
    columns: Columns = None,
    text_columns: TextColumns = None,
    vector: Vector = None,
    like: Like = None,
    vector_column_name: VectorColumn = None,
    metric: Metric = None,
    nprobes: Probes = None,
    refine_factor: RefineFactor = None,
    vector_weight: VectorWeight = None,
    no_index: NoIndex = False,
    at: At = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Search by text, by vector, or by both, and show the best rows with their scores."""
    snapshot = open_at(location(uri, options), at)
    nearest = _nearest(snapshot, vector, like, vector_column_name)
    if nearest is not None:
        nearest = replace(
            nearest,
            metric=None if metric is None else metric_named(metric),
            minimum_nprobes=nprobes,
            maximum_nprobes=nprobes,
            refine_factor=refine_factor,
            use_index=not no_index,
        )
    elif any(given is not None for given in (metric, nprobes, refine_factor, vector_column_name)):
        problem = "these options need a query vector; specify --vector or --like"
        raise typer.BadParameter(problem, param_hint=_VECTOR_OPTIONS)
    words = (
        None if text is None else words_query(text, column_names(text_columns, "--text-columns"))
    )
    request = SearchRequest(
        nearest=nearest,
        text=words,
        k=k,
        filter=where if like is None else other_rows(where, like),
        columns=column_names(columns),
        with_row_id=True,
        fusion=fusion_of(vector_weight),
        use_scalar_index=not no_index,
    )
    print_rows(search_rows(snapshot, request), snapshot, output)


def _nearest(
    snapshot: Snapshot, vector: str | None, like: int | None, column: str | None
) -> Nearest | None:
    if vector is not None and like is not None:
        problem = "--vector and --like are two query vectors; specify only one"
        raise typer.BadParameter(problem, param_hint="'--like'")
    if vector is None and like is None:
        return None
    path = vector_column(snapshot, column)
    if like is not None:
        return nearest_to_row(snapshot, path, like)
    return Nearest(column=path, queries=_vector(vector or ""))


def _vector(text: str) -> npt.NDArray[np.float32]:
    """Read a vector from a file, or from its numbers."""
    try:
        if text.startswith("@"):
            found = np.load(Path(text[1:]), allow_pickle=False)
        else:
            found = np.array([float(part) for part in text.split(",")])
        vector: npt.NDArray[np.float32] = np.asarray(found, dtype=np.float32)
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
