"""`tailrace demo`: card payments scored in flight, as micro-batch and then in Real-Time Mode."""
