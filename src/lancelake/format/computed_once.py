"""Attributes that are computed when first asked for, without a lock.

Python 3.11's `functools.cached_property` holds one lock for all objects of a class while it
computes, so that a file which is slow to open on one thread would stop every other thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801  # a decorator
    """A property whose value is kept; two threads at once may both compute it."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | computed_once[T]:
        if instance is None:
            return self
        # Python looks here first from now on: this descriptor cannot be set.
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value
