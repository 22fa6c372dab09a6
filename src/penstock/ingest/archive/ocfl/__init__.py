"""OCFL 1.1 objects."""
