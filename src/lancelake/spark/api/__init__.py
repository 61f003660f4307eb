"""What a PySpark program calls: sessions, `LanceTable` and its builders."""
