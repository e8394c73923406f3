OUTPUT = "`key` STRING, `minute` BIGINT, number BIGINT, intended_ns BIGINT, `count` BIGINT"
PRIMARY_KEY = "`key`, `minute`"
# By the minute of the record: a window function would give its rows only when the window ends.
QUERY = """
SELECT `key`, intended_ns / 60000000000, MAX(number), MAX(intended_ns), COUNT(*)
FROM input GROUP BY `key`, intended_ns / 60000000000
"""
