EVENT_TIME = ", `at` AS PROCTIME()"
OUTPUT = "number BIGINT, intended_ns BIGINT, id BIGINT"
# Flink's own pattern for keeping the first row of a key.
QUERY = """
SELECT number, intended_ns, id FROM (
SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY `at` ASC) AS place FROM input) WHERE place = 1
"""
