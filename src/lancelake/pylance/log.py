"""Logger of the face, as in pylance."""

from __future__ import annotations

import logging
import os

__all__ = [
    "ENV_NAME_PYLANCE_LOGGING_LEVEL",
    "LOGGER",
    "get_log_level",
    "get_python_log_level",
    "set_logger",
]

ENV_NAME_PYLANCE_LOGGING_LEVEL = "LANCE_LOG"

_FORMAT = "%(asctime)s %(name)s [%(levelname)s] %(filename)s:%(lineno)d %(funcName)s : %(message)s"


def get_python_log_level(rust_log_level: str) -> str:
    """Return the level of Python's logging; it has no `trace`."""
    return "DEBUG" if rust_log_level.lower() == "trace" else rust_log_level


def get_log_level() -> str:
    """Return the level set in the environment, without those of single modules."""
    text = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "").upper()
    levels = [get_python_log_level(entry) for entry in text.split(",") if "=" not in entry]
    return levels[0] if levels and levels[0] in logging.getLevelNamesMapping() else "INFO"


LOGGER = logging.getLogger("pylance")
LOGGER.setLevel(get_log_level())


def set_logger(
    file_path: str | None = "pylance.log",
    name: str = "pylance",
    level: int = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Log to a file, or to a handler."""
    if log_handler is None and file_path is None:
        raise TypeError("set_logger needs file_path or log_handler")
    handler = log_handler or logging.FileHandler(file_path or "")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.addHandler(handler)
