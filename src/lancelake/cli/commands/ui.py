"""Explore tables in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli.console import stdout
from lancelake.cli.options import CommandModule, StorageOptions, argument, flag
from lancelake.cli.phrases import printable
from lancelake.cli.tables import confine_to, place_of
from lancelake.extras import optional

commands = CommandModule()

Roots = Annotated[
    list[str] | None,
    argument("URI|DIR", "Tables, or folders with tables. By default, the current folder."),
]


@commands.add(example="photos.lance")
def ui(
    roots: Roots = None,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 chooses a free one.")
    ] = 0,
    opens: Annotated[bool, flag("--open", "Open the page in the default browser.")] = False,
    options: StorageOptions = None,
) -> None:
    """Explore tables in the browser: rows, versions, schemas, fragments, health.

    The page is read-only, and is served on this machine alone, at an address with a secret token.
    The tables can access only the given locations, and those of --confine-to.
    """
    uris = roots or ["."]
    for package in ("starlette", "uvicorn"):
        optional(package, extra="ui", purpose="the explorer")
    # The explorer is a face of its own; only its entry point is known here.
    from lancelake.ui.server import serve  # noqa: PLC0415  # an extra

    confine_to.set([*uris, *(confine_to.get() or ())])
    places = [place_of(uri, options).location for uri in uris]

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
