"""Tables: rows, columns, indices, branches, and the commits that change them."""
