from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.commit.snapshot import update_hint
from lancelake.errors import StorageError
from lancelake.format import layout
from lancelake.format.layout import DETACHED_BIT
from tests.support.failing_store import FailingCalls, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import line_on


def _hint(store: DictStore) -> bytes | None:
    return store.objects.get(layout.VERSION_HINT)


def test_an_old_hint_is_raised() -> None:
    store = DictStore({layout.VERSION_HINT: b'{"version":1}'})
    update_hint(line_on(store), 2)
    assert _hint(store) == b'{"version":2}'


def test_a_hint_is_never_lowered() -> None:
    store = DictStore({layout.VERSION_HINT: b'{"version":3}'})
    update_hint(line_on(store), 2)
    assert _hint(store) == b'{"version":3}'


def test_a_broken_hint_is_replaced() -> None:
    store = DictStore({layout.VERSION_HINT: b"{"})
    update_hint(line_on(store), 2)
    assert _hint(store) == b'{"version":2}'


@pytest.mark.parametrize("creates_hint", [False, True])
def test_a_missing_hint_is_made_only_where_readers_need_it(creates_hint: bool) -> None:
    store = DictStore()
    update_hint(replace(line_on(store), creates_hint=creates_hint), 2)
    assert (_hint(store) is not None) == creates_hint


def test_a_detached_version_is_never_hinted() -> None:
    store = DictStore({layout.VERSION_HINT: b'{"version":1}'})
    update_hint(line_on(store), DETACHED_BIT | 7)
    assert _hint(store) == b'{"version":1}'


@pytest.mark.parametrize("number", [0, 1])
def test_failures_do_not_matter(number: int) -> None:
    store = DictStore({layout.VERSION_HINT: b'{"version":1}'})
    calls = FailingCalls([number], stop=Stop.AFTER, error=lambda: StorageError("x"))
    update_hint(line_on(calls.on(store)), 2)
    assert len(calls.calls) == number + 1
