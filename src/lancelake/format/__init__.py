"""The Lance table format: values and codecs of its files, without I/O."""
