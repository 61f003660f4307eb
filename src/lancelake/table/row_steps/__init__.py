"""Steps that changes of rows share: find them, mark them deleted, read and write them again."""
