"""BTREE index: pages of sorted values, and a lookup table of page bounds."""
