"""What the tests share: waiting on conditions, Kafka records in and out, processes."""
