"""Checks of a history, one module each."""
