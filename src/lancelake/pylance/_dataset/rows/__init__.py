"""Dataset and fragment methods that change rows and columns."""
