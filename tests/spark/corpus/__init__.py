"""Queries made by chance, from a seed, and the tables that they are asked of."""
