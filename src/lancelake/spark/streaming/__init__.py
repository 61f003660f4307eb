"""Offsets, sources and sinks of streams."""
