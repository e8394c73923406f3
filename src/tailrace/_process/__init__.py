"""Processes that end with their owner, folders, the terminal."""
