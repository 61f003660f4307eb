"""Dataset and fragment methods that scan, search, count and take rows."""
