"""Arguments of dataset methods, checked and converted, and the errors for invalid ones."""
