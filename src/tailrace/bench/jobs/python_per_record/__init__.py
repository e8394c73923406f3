"""Parse, call a Python function, write its result."""
