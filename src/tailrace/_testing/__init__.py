"""What `tailrace.testing` is made of."""
