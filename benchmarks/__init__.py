"""Lancelake beside official Lance, on the same machine and the same data."""
