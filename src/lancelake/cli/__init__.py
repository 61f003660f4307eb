"""The face for people at a terminal: parse, call, render."""
