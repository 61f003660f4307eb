"""Fork check of the codec's threads.

The codec's library keeps its idle threads in a list. A fork copies the list but not the threads:
a child that uses them blocks forever or corrupts memory.
"""

from __future__ import annotations

from lancelake.process import NativeThreads

codec_threads = NativeThreads("the data files' codec")
"""Checked before a file is opened."""
