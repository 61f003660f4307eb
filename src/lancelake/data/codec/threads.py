"""The codec's threads, which a forked process cannot have once its parent has them.

The codec's library keeps its waiting threads in a list of its own. A fork copies the list, and
ends the threads whose memory it points into: what the child then runs there waits forever,
or corrupts memory.
"""

from __future__ import annotations

from lancelake.process import NativeThreads

codec_threads = NativeThreads("the data files' codec")
"""Asked before every opening of a file."""
