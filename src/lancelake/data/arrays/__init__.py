"""Arrow arrays prepared for data files, and values of data files prepared for users."""
