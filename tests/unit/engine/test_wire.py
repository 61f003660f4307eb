"""Messages between processes: the same release reads them, any other says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake import __version__
from lancelake.engine import port
from lancelake.errors import ReleaseMismatchError


@given(st.binary())
def test_a_payload_is_unsealed_as_it_was_sealed(payload: bytes) -> None:
    assert port.unseal(port.seal(payload)) == payload


def test_a_value_is_loaded_as_it_was_dumped() -> None:
    assert port.loads(port.dumps({"a": [1, None]})) == {"a": [1, None]}


def test_another_release_is_named_with_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "__version__", "7.8.9")
    message = port.dumps("rows")
    monkeypatch.undo()
    with pytest.raises(ReleaseMismatchError) as caught:
        port.loads(message)
    assert "lancelake 7.8.9" in str(caught.value)
    assert f"lancelake {__version__}" in str(caught.value)
    assert caught.value.facts == {"here": __version__, "there": "7.8.9"}


def test_another_format_of_the_same_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_FORMAT", 99)
    message = port.seal(b"rows")
    monkeypatch.undo()
    with pytest.raises(ReleaseMismatchError, match="wire format 99"):
        port.unseal(message)


def test_nothing_of_another_release_is_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "__version__", "7.8.9")
    # A pickle that names a module that this release does not have.
    message = port.seal(b"\x80\x04\x8c\x10lancelake.gone.xy\x94\x8c\x01X\x93.")
    monkeypatch.undo()
    with pytest.raises(ReleaseMismatchError):
        port.loads(message)


@given(st.binary(max_size=64))
def test_bytes_without_a_header_are_refused(data: bytes) -> None:
    with pytest.raises(ReleaseMismatchError):
        port.unseal(data)


@given(st.integers(min_value=0))
def test_a_header_that_is_cut_off_is_refused(length: int) -> None:
    header = len(port.seal(b""))
    with pytest.raises(ReleaseMismatchError):
        port.unseal(port.seal(b"rows")[: length % header])
