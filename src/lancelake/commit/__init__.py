"""Commit protocol: publishes manifests as versions of a table, with retries."""
