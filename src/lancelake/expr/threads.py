"""DataFusion's threads: expressions are evaluated without them, sorting and SQL are not."""

from __future__ import annotations

from lancelake.process import NativeThreads

datafusion_threads = NativeThreads("DataFusion's sorting and SQL")
"""Marked as started by whatever evaluates an expression, since that starts them too."""
