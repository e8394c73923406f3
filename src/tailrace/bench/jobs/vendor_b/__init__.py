"""Query B of the vendor's comparison: query A, and how often each text came in a minute, behind one shuffle."""

WINDOW = "1 minute"
# Up to here, all texts of a key are alike.
LONGEST = 1000
