"""Scripts that print the figures in the documentation."""
