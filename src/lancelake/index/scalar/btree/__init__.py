"""BTREE: pages of sorted values, and a table of the bounds of each page."""
