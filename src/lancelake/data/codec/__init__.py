"""The port to the official codec, and workarounds for files that it misreads."""
