"""Fork check of DataFusion's threads, which sorting and SQL use."""

from __future__ import annotations

from lancelake.process import NativeThreads

datafusion_threads = NativeThreads("DataFusion's sorting and SQL")
"""Marked as started by every evaluation, since that starts them as well."""
