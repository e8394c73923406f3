"""A count by key, kept in the state of a processor in Python."""
