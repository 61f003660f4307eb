"""One module for each question that is put to a history."""
