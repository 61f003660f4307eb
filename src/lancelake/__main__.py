"""The command `lancelake`, and `python -m lancelake`."""

from __future__ import annotations

import sys

from lancelake.errors import MissingPackageError
from lancelake.extras import optional


def main() -> None:
    """Run the command line; without its packages, name the extra that installs them."""
    try:
        optional("typer", extra="cli", purpose="The command line")
    except MissingPackageError as error:
        print(f"Error: {error.problem}\n  {error.next_step}", file=sys.stderr)  # noqa: T201
        raise SystemExit(error.exit_code) from None
    from lancelake.cli.group import main as run  # noqa: PLC0415  # needs the packages

    run()


if __name__ == "__main__":
    main()
