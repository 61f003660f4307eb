"""Mixins of the dataset, and values that pylance defines inside its modules."""
