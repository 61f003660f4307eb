"""Stop words of languages and releases."""

from __future__ import annotations

import pytest

from lancelake.index.text.parameters import LANGUAGES
from lancelake.index.text.stop_words import of_all_languages, of_language


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_words_that_are_dropped(language: str) -> None:
    found = of_language(language, is_current=True)
    assert len(found) > 40
    assert found == tuple(sorted(set(found)))


@pytest.mark.parametrize(
    ("language", "only_old", "only_current"),
    [
        ("English", {"no", "not"}, {"over", "she'll"}),
        ("German", {"nicht", "kein", "ohne"}, {"dass"}),
        ("French", {"ne", "pas", "sans"}, {"elles"}),
        ("Spanish", {"no", "ni", "sin", "nada"}, set()),
    ],
)
def test_releases_drop_different_words(
    language: str, only_old: set[str], only_current: set[str]
) -> None:
    old = set(of_language(language, is_current=False))
    current = set(of_language(language, is_current=True))
    assert only_old <= old - current
    assert only_current <= current - old


def test_a_word_that_means_something_in_another_language_is_kept() -> None:
    assert "war" in of_language("German", is_current=True)
    assert "war" not in of_all_languages()
