"""Reading and writing of data files, deletion files and blobs as Arrow data."""
