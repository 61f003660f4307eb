"""`python -m lancelake`: the command line."""

from __future__ import annotations

from lancelake.cli.main import main

if __name__ == "__main__":
    main()
