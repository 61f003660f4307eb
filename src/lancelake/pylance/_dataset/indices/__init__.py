"""Dataset methods and values of scalar, text and vector indices."""
