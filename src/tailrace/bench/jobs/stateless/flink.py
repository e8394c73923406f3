OUTPUT = "number BIGINT, intended_ns BIGINT, doubled BIGINT"
QUERY = "SELECT number, intended_ns, amount * 2 FROM input WHERE MOD(amount, 10) <> 0"
