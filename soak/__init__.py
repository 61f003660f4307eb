"""Soak test: many writers and readers, injected faults, and a checker of their histories."""
