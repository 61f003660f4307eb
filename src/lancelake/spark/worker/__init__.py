"""What runs in Python workers: how functions get there, and what they answer with."""
