"""Words by the rules of Unicode for texts in the Latin, Greek and Cyrillic alphabets.

Other texts are refused: where words end there needs dictionaries, or tables of all characters.
"""

from __future__ import annotations

import re

from lancelake.errors import UnsupportedError

_LETTERS = (
    "A-Za-z"
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
    "\u0370-\u0373\u0376\u0377\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u03ff"
    "\u0400-\u0481\u048a-\u052f"
)
# Signs that belong to no word: no-break space, quotation marks, dashes, ellipsis, currencies.
_SIGNS = "\u00a0\u00a3\u00ab\u00bb\u2013\u2014\u201c-\u201e\u2026\u20ac"
# Signs inside of words and numbers; curly apostrophes are refused: their folding differs.
_INNER = ".'"
_KNOWN = rf"\x00-\x7f{_LETTERS}{_SIGNS}"
_UNKNOWN = re.compile(f"[^{_KNOWN}]")
_SEGMENT = re.compile(
    f"(?:[{_LETTERS}0-9_]"
    f"|(?<=[{_LETTERS}])[{_INNER}](?=[{_LETTERS}])"
    f"|(?<=[0-9])[{_INNER},;](?=[0-9]))+"
)


def words(text: str) -> list[str]:
    """Return the words of a text; raise if it has characters of other alphabets."""
    ensure_known(text)
    return [each for each in _SEGMENT.findall(text) if each.strip("_")]


def ensure_known(text: str) -> None:
    """Raise if a text has characters of other alphabets."""
    found = _UNKNOWN.search(text)
    if found is not None:
        problem = f"texts with {found.group()!r} are not divided into words as ICU does"
        action = "Search the index with official Lance, or build it with base_tokenizer='simple'."
        raise UnsupportedError(problem, action=action)
