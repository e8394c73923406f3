"""The parts of `tailrace.testing`."""
