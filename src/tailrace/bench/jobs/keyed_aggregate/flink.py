OUTPUT = "`key` STRING, number BIGINT, intended_ns BIGINT, `count` BIGINT, total BIGINT"
PRIMARY_KEY = "`key`"
QUERY = "SELECT `key`, MAX(number), MAX(intended_ns), COUNT(*), SUM(amount) FROM input GROUP BY `key`"
