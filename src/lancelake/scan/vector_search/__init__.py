"""Search of the rows whose vectors are nearest to a query."""
