"""What depositors hand in: where it may come from, how it is fetched and read."""
