"""Query A of the vendor's comparison: truncate each value, encode it with base64, write it."""

LONGEST = 500 * 1024
