"""Tables of words in files beside the modules that use them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def word_tables(package: str, name: str) -> dict[str, list[str]]:
    """Return the words of a file of a package, by the name in brackets above them."""
    text = (files(package) / name).read_text(encoding="utf-8")
    parts = re.split(r"^\[(.+)\]$", text, flags=re.MULTILINE)[1:]
    return {title: words.split() for title, words in zip(parts[::2], parts[1::2], strict=True)}
