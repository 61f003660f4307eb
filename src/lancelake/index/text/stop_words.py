"""Built-in stop words of each language, which releases of Lance do not agree on.

They are in `stop_words.txt`. Found by experiment: one document per word, indexed by release 4.0.2
and by release 14.0.2.
"""

from __future__ import annotations

from functools import cache

from lancelake.index.word_tables import word_tables


@cache
def of_language(language: str, *, is_current: bool) -> tuple[str, ...]:
    """Return the words of a language, as in release 14 or as in release 4."""
    lists = _lists()
    if not is_current and language == "English":
        return tuple(lists["old_english"])
    words = set(lists[f"current {language}"])
    if not is_current:
        words -= set(lists.get(f"only_current {language}", ()))
        words |= set(lists.get(f"only_old {language}", ()))
    return tuple(sorted(words))


@cache
def of_all_languages() -> tuple[str, ...]:
    """Return the words that the tokenizers of Unicode drop, whatever the language is."""
    lists = _lists()
    found = {word for name, words in lists.items() if name.startswith("current ") for word in words}
    # Words that mean something else in another language.
    return tuple(sorted(found.difference(lists["of_one_language"])))


def _lists() -> dict[str, list[str]]:
    return word_tables("lancelake.index.text", "stop_words.txt")
