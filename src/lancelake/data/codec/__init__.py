"""The official codec of Lance files, and workarounds for files that it misreads."""
