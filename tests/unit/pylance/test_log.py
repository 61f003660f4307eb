"""Levels and handlers of the logger."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lancelake.pylance import log


@pytest.mark.parametrize(
    ("text", "level"),
    [("", "INFO"), ("trace", "DEBUG"), ("warning,lance=debug", "WARNING"), ("off", "INFO")],
)
def test_the_environment_sets_the_level(
    monkeypatch: pytest.MonkeyPatch, text: str, level: str
) -> None:
    monkeypatch.setenv(log.ENV_NAME_PYLANCE_LOGGING_LEVEL, text)
    assert log.get_log_level() == level


def test_messages_go_to_a_file(tmp_path: Path) -> None:
    log.set_logger(str(tmp_path / "x.log"), name="lancelake-test", level=logging.DEBUG)
    logging.getLogger("lancelake-test").debug("a message")
    assert "a message" in (tmp_path / "x.log").read_text(encoding="utf-8")


def test_a_file_or_a_handler_is_needed() -> None:
    with pytest.raises(TypeError, match="file_path or log_handler"):
        log.set_logger(None)
