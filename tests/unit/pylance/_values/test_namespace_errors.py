"""Errors of namespaces."""

from __future__ import annotations

import pickle

import lance_namespace as api
import pytest

from lancelake import errors
from lancelake.pylance import _namespace


@pytest.mark.parametrize(
    ("kind", "own", "named"),
    [
        ("MissingTable", errors.TableNotFoundError, api.TableNotFoundError),
        ("TakenTable", errors.AlreadyExistsError, api.TableAlreadyExistsError),
        ("MissingNamespace", errors.NotFoundError, api.NamespaceNotFoundError),
        ("TakenNamespace", errors.AlreadyExistsError, api.NamespaceAlreadyExistsError),
        ("NamespaceNotEmpty", errors.InvalidRequestError, api.NamespaceNotEmptyError),
        ("InvalidInput", errors.InvalidRequestError, api.InvalidInputError),
    ],
)
def test_an_error_is_of_both_kinds(
    kind: str, own: type[errors.LanceTableError], named: type[Exception]
) -> None:
    error = getattr(_namespace, kind)("wrong")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, own)
    assert isinstance(again, named)
    assert str(again) == "wrong"
    assert errors.type_registry[own.code] is own
