"""Cached properties without a lock.

Python 3.11's `functools.cached_property` holds one lock for all objects of a class while it
computes, so that a slow file on one thread would block all other threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801  # a decorator
    """A cached property; concurrent threads may both compute it."""

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
        # Python finds it here from now on, because this descriptor has no setter.
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value
