from . import LONGEST

OUTPUT = "`key` STRING, `minute` BIGINT, number BIGINT, intended_ns BIGINT, `count` BIGINT, body STRING"
PRIMARY_KEY = "`key`, `minute`, body"
# By the minute of the record: a window function would give its rows only when the window ends.
QUERY = f"""
SELECT `key`, `minute`, MAX(number), MAX(intended_ns), COUNT(*), body
FROM (SELECT *, intended_ns / 60000000000 AS `minute`, TO_BASE64(SUBSTRING(text, 1, {LONGEST})) AS body FROM input)
GROUP BY `key`, `minute`, body
"""  # noqa: S608
