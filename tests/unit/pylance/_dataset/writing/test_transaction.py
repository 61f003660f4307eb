"""Transactions show what was read and done, and convert without loss."""

from __future__ import annotations

import pickle
from uuid import UUID

from hypothesis import given

from lancelake.format import operations
from lancelake.pylance._dataset.transactions import (
    LanceOperation,
    Transaction,
    from_transaction,
    to_transaction,
)
from tests.strategies.format_operations import BY_KIND, transactions

RESTORE = LanceOperation.Restore(2)


def test_each_transaction_has_a_uuid_of_its_own():
    first, second = Transaction(1, RESTORE), Transaction(1, RESTORE)

    assert UUID(first.uuid) != UUID(second.uuid)


def test_it_is_printed_as_official_releases_print_it():
    assert repr(Transaction(1, RESTORE, "u")) == (
        "Transaction(read_version=1, operation=LanceOperation.Restore(version=2), uuid='u', "
        "transaction_properties={})"
    )


def test_transactions_are_compared_by_their_values():
    assert Transaction(1, RESTORE, "u") == Transaction(1, LanceOperation.Restore(2), "u")
    assert Transaction(1, RESTORE, "u") != Transaction(1, RESTORE, "v")


def test_properties_may_be_none():
    assert to_transaction(Transaction(1, RESTORE, "u", None)).properties == {}


@given(transactions(BY_KIND[operations.Restore]))
def test_a_transaction_of_the_format_comes_back_whole(entry):
    assert to_transaction(from_transaction(entry)) == entry


@given(transactions(BY_KIND[operations.Append]))
def test_pickle_keeps_everything(entry):
    assert to_transaction(pickle.loads(pickle.dumps(from_transaction(entry)))) == entry
