"""Many writers and readers, faults, and a judge of what they saw."""
