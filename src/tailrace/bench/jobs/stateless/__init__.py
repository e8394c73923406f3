"""Parse, filter, project."""
