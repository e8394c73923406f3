"""How a real-time query ends well and comes back."""
