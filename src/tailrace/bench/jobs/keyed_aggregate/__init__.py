"""Count and sum by key; every record gives an update."""
