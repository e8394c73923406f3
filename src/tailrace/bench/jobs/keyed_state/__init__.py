"""A Python processor with state by key and a timer."""
