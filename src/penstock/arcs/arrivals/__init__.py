"""TODO arrivals."""
