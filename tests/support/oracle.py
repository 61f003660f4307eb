"""Expected results: those of the writing release, or of the newest where that one is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from tests.support.official import RELEASES, OfficialError, OfficialPool
from tests.support.readers import OfficialReader, Reader

Answer = TypeVar("Answer")


class Oracle:
    """The releases that may answer for tables of one writer, the writer first.

    Release 4.0.2 misreads some columns that it wrote well (lists whose items are all null), so
    the newest release may overrule it; the newest release itself is never overruled.
    """

    def __init__(self, officials: OfficialPool, writer: str) -> None:
        """Order the judges."""
        judges = (writer, *(r for r in RELEASES[-1:] if r != writer))
        self._judges = [OfficialReader(officials(release)) for release in judges]

    def ensure_same(
        self,
        subject: Reader,
        ask: Callable[[Reader], Answer],
        compare: Callable[[Answer, Answer], None],
    ) -> None:
        """Raise AssertionError when the subject agrees with no judge who has an answer."""
        complaint: AssertionError | None = None
        for index, expected in enumerate(self._answers(ask)):
            if index == 0:
                actual = ask(subject)
            try:
                compare(actual, expected)
            except AssertionError as error:
                complaint = complaint or error
            else:
                return
        if complaint is not None:
            raise complaint

    def _answers(self, ask: Callable[[Reader], Answer]) -> Iterator[Answer]:
        for judge in self._judges:
            try:
                answer = ask(judge)
            except OfficialError:
                continue
            yield answer
