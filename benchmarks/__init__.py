"""Benchmarks of Lancelake and official Lance, on the same machine and the same data."""
