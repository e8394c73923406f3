"""Query C of the vendor's comparison: query A, and a join with a table of 10,000 rows that every task has."""

TABLE_ROWS = 10_000
