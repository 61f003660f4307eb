"""Names of tables, procedures, and the methods of `LanceTable` that are procedures too."""
