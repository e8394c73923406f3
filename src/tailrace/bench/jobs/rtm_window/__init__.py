"""A count by key in windows of one minute."""

WINDOW = "1 minute"
