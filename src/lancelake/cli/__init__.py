"""Command line interface."""

from __future__ import annotations

from lancelake.memwal import follow_commits

follow_commits()
