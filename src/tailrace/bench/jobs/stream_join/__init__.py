"""Two streams, joined by id within ten seconds."""
