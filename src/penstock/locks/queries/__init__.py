"""Read queries of locks, claims, lots and holds."""
