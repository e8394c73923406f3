"""Owned processes, folders and the terminal."""
