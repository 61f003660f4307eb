"""Values of the face that other modules of it share, and that know no dataset."""
