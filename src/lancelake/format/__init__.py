"""What the bytes of a table mean: pure values and codecs, no input or output."""
