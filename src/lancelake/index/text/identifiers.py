"""Identifiers of programs, divided into their words."""

from __future__ import annotations


def identifier_words(identifier: str, *, at_numbers: bool) -> list[str]:
    """Return the words of an identifier.

    They end at underscores, where lower case changes to upper case, before the last of several
    capitals that a small letter follows, and if wanted before and after numbers.
    """
    return [
        word
        for part in identifier.split("_")
        if part
        for word in _words(part, at_numbers=at_numbers)
    ]


def _words(part: str, *, at_numbers: bool) -> list[str]:
    found: list[str] = []
    start = 0
    for place in range(1, len(part)):
        before, here, after = part[place - 1], part[place], part[place + 1 : place + 2]
        is_end = (before.islower() and here.isupper()) or (
            before.isupper() and here.isupper() and after.islower()
        )
        if is_end or (at_numbers and before.isnumeric() != here.isnumeric()):
            found.append(part[start:place])
            start = place
    return [*found, part[start:]]
