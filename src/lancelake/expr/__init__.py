"""Predicates and expressions over Arrow batches."""
