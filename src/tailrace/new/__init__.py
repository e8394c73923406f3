"""`tailrace new`: an example as the beginning of a user's own project."""
