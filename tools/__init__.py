"""Programs for those who work on Tailrace."""
