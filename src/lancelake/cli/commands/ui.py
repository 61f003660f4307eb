"""`lancelake ui`: explore tables in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli.console import stdout
from lancelake.cli.options import StorageOptions
from lancelake.cli.table_location import confine_to as allowed
from lancelake.cli.table_location import location
from lancelake.cli.words import printable
from lancelake.extras import optional

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Roots = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="URI|DIR",
        show_default=False,
        help="Tables, or folders with tables. By default, the current folder.",
    ),
]


@app.command()
def ui(
    roots: Roots = None,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 chooses a free one.")
    ] = 0,
    opens: Annotated[
        bool, typer.Option("--open", help="Open the page in the default browser.")
    ] = False,
    options: StorageOptions = None,
) -> None:
    """Explore tables in the browser: rows, versions, schemas, fragments, health.

    The page is read-only, and is served on this machine alone, at an address with a secret token.
    The tables can access only the given locations, and those of --confine-to.
    """
    given = roots or ["."]
    for package in ("starlette", "uvicorn"):
        optional(package, extra="ui", purpose="the explorer")
    # The explorer is a face of its own; only its entry point is known here.
    from lancelake.ui.server import serve  # noqa: PLC0415  # an extra

    allowed.set([*given, *(allowed.get() or ())])
    places = [location(uri, options) for uri in given]

    def ready(address: str) -> None:
        console = stdout()
        for place in places:
            console.print(Text(f"Exploring {printable(place.uri)}", style="dim"))
        console.print(Text(address, style="bold"), soft_wrap=True)
        console.print(Text("Press Ctrl+C to stop.", style="dim"))
        if opens:
            webbrowser.open(address)

    try:
        serve(places, port=port, ready=ready)
    except KeyboardInterrupt:
        return
