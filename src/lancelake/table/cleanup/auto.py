"""Automatic cleanup after a commit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.durations import parse_duration
from lancelake.table.auto_cleanup import (
    INTERVAL,
    OLDER_THAN,
    RATE_LIMIT,
    REFERENCED_BRANCHES,
    RETAIN_VERSIONS,
)
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.cleanup.run import clean_up

# The version just committed, and the one its writer may still be reading.
_ALWAYS_KEPT = 2
_MOST_DIGITS = 19
_TRUTHS = {"true": True, "false": False}


def clean_up_if_due(made: Snapshot) -> None:
    """Clean up if the config of a version that was just committed requires it now."""
    config = made.manifest.config
    if INTERVAL not in config:
        return
    interval = _number(config, INTERVAL) or 0
    if interval == 0 or made.version % interval == 0:
        clean_up(made, policy_of(config))


def policy_of(config: Mapping[str, str]) -> CleanupPolicy:
    """Return the cleanup policy of a config.

    Tags retain their versions without raising an error; the two newest versions are always
    retained.
    """
    age = config.get(OLDER_THAN)
    return CleanupPolicy(
        older_than=None if age is None else _age(age),
        retain_versions=max(_ALWAYS_KEPT, _number(config, RETAIN_VERSIONS, least=1) or 0),
        delete_rate_limit=_number(config, RATE_LIMIT, least=1),
        clean_referenced_branches=_truth(config, REFERENCED_BRANCHES),
    )


def _age(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidRequestError(f"config {OLDER_THAN}: {error}", found=text) from error


def _number(config: Mapping[str, str], key: str, *, least: int = 0) -> int | None:
    text = config.get(key)
    if text is None:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or int(text) < least:
        problem = f"config {key} is {text!r}, but must be a number of at least {least}"
        raise InvalidRequestError(problem, found=text)
    return int(text)


def _truth(config: Mapping[str, str], key: str) -> bool:
    text = config.get(key, "false")
    if text not in _TRUTHS:
        problem = f"config {key} is {text!r}, but must be true or false"
        raise InvalidRequestError(problem, found=text)
    return _TRUTHS[text]
