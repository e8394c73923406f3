EVENT_TIME = ", `at` AS TO_TIMESTAMP_LTZ(intended_ns / 1000000, 3), WATERMARK FOR `at` AS `at` - INTERVAL '10' SECOND"
OUTPUT = "number BIGINT, intended_ns BIGINT, `sum` BIGINT"
# Within ten seconds of each other: an interval join, which drops its state after that time.
QUERY = """
SELECT paid.number, paid.intended_ns, ordered.amount + paid.amount
FROM input AS ordered JOIN input1 AS paid ON ordered.id = paid.id
AND paid.`at` BETWEEN ordered.`at` - INTERVAL '10' SECOND AND ordered.`at` + INTERVAL '10' SECOND
"""
