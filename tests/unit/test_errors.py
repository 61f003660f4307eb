from __future__ import annotations

import pickle

import pytest

from lancelake.errors import (
    CorruptTableError,
    IncompatibleConflictError,
    InvalidExpressionError,
    InvalidExpressionOSError,
    InvalidRequestError,
    InvalidRequestOSError,
    LanceTableError,
    RetryableConflictError,
    TableNotFoundError,
    UnsupportedError,
    naming,
    type_registry,
)

TABLE = "s3://bucket/orders"


def test_an_error_without_advice_is_the_problem_alone() -> None:
    assert str(InvalidRequestError("limit must not be negative")) == "limit must not be negative"


def test_place_and_advice_follow_the_problem() -> None:
    error = InvalidRequestError("no column x", table=TABLE, version=3, action="Did you mean y?")
    assert str(error) == f"no column x [table {TABLE}, version 3]. Did you mean y?"


def test_a_location_in_the_problem_is_not_repeated() -> None:
    error = TableNotFoundError(f"no table at {TABLE}", table=TABLE)
    assert str(error) == f"no table at {TABLE}"


def test_a_version_in_the_problem_is_not_repeated() -> None:
    error = InvalidRequestError("version 12 was not found", table=TABLE, version=12)
    assert str(error) == f"version 12 was not found [table {TABLE}]"


@pytest.mark.parametrize("other", [f"{TABLE}-2", f"{TABLE}/data/0.lance", f"{TABLE}.bak"])
def test_a_longer_location_in_the_problem_does_not_stand_for_the_table(other: str) -> None:
    assert f"[table {TABLE}]" in str(InvalidRequestError(f"{other} is damaged", table=TABLE))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("It failed. Retry.", f"It failed. Retry [table {TABLE}]. Do it."),
        ("did you mean x?", f"did you mean x? [table {TABLE}]. Do it."),
        ("odd: a..", f"odd: a [table {TABLE}]. Do it."),
    ],
)
def test_a_sentence_ends_once(problem: str, message: str) -> None:
    assert str(InvalidRequestError(problem, table=TABLE, action="Do it.")) == message


def test_a_question_is_not_followed_by_a_period() -> None:
    error = InvalidRequestError("did you mean x?", action="Write x.")
    assert str(error) == "did you mean x? Write x."


def test_no_class_has_advice_that_only_repeats_its_name() -> None:
    advised = {code for code, kind in type_registry.items() if kind.action is not None}
    assert advised == {
        "corrupt_table",
        "damaged_index",
        "function",
        "internal",
        "place_not_allowed",
        "release_mismatch",
        "retryable_conflict",
        "uncertain_commit",
    }


def test_naming_adds_the_table_to_an_error_without_one() -> None:
    with pytest.raises(InvalidRequestError) as caught, naming(TABLE, 4):
        raise InvalidRequestError("no column x")
    assert str(caught.value) == f"no column x [table {TABLE}, version 4]"


def test_naming_leaves_the_table_of_an_error() -> None:
    with pytest.raises(CorruptTableError) as caught, naming(TABLE, 4):
        raise CorruptTableError("a file is missing", table="/other")
    assert (caught.value.table, caught.value.version) == ("/other", None)


def test_an_invalid_request_is_no_os_error() -> None:
    assert not issubclass(InvalidRequestError, OSError)
    assert not issubclass(InvalidExpressionError, OSError)


def test_an_invalid_request_of_a_call_that_raises_os_error_keeps_its_class() -> None:
    assert issubclass(InvalidRequestOSError, InvalidRequestError)
    assert issubclass(InvalidExpressionOSError, InvalidExpressionError)
    assert issubclass(InvalidExpressionOSError, OSError)


@pytest.mark.parametrize("kind", [RetryableConflictError, IncompatibleConflictError])
def test_a_conflict_gives_its_reason_within_one_sentence(kind: type[LanceTableError]) -> None:
    error = kind.between(mine="Append", theirs="Delete", version=5, reason="same rows")  # type: ignore[attr-defined]
    assert "version 5 (same rows)" in str(error)
    assert ".." not in str(error)


@pytest.mark.parametrize("kind", type_registry.values())
def test_every_error_survives_pickling(kind: type[LanceTableError]) -> None:
    error = kind("wrong", table=TABLE, version=2, action="Do it.", column="x")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.facts == {"column": "x"}


def test_an_error_without_a_code_of_its_own_is_sent_as_its_base() -> None:
    class NarrowError(UnsupportedError):
        """An error that only one caller handles."""

    for error in (NarrowError("no"), UnsupportedError("no")):
        assert type(pickle.loads(pickle.dumps(error))) is UnsupportedError
