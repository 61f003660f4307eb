"""Tables addressed through a namespace client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.arguments import find_table


class Client:
    """Answers every request for a table alike, and remembers it."""

    def __init__(self, **answer: Any) -> None:
        self.answer = SimpleNamespace(**{"location": "/t", "storage_options": None, **answer})
        self.asked: list[tuple[str, Any]] = []

    def describe_table(self, request: Any) -> Any:
        self.asked.append(("describe", request.model_dump()["id"]))
        return self.answer

    def declare_table(self, request: Any) -> Any:
        self.asked.append(("declare", request.id))
        return self.answer


def test_only_creation_declares_a_table() -> None:
    client = Client()
    for mode in ("create", "append", "overwrite", None):
        assert find_table(None, client, ["n", "t"], None, mode=mode).uri == "/t"
    assert client.asked == [("declare", ["n", "t"]), *[("describe", ["n", "t"])] * 3]


def test_options_of_the_namespace_win() -> None:
    client = Client(storage_options={"a": "theirs"})
    found = find_table(None, client, ["t"], {"a": "mine", "b": "mine"})
    assert found.storage_options == {"a": "theirs", "b": "mine"}


@pytest.mark.parametrize(
    ("uri", "client", "table_id"),
    [("/t", Client(), ["t"]), (None, Client(), None), (None, None, ["t"]), (None, None, None)],
)
def test_a_table_has_one_address(uri: Any, client: Any, table_id: Any) -> None:
    with pytest.raises(InvalidRequestError):
        find_table(uri, client, table_id, None)


def test_versions_managed_by_a_namespace_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="manage the versions"):
        find_table(None, Client(managed_versioning=True), ["t"], None)


def test_an_answer_without_a_location_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="did not return a 'location'"):
        find_table(None, Client(location=None), ["t"], None)
