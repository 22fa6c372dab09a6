"""TODO ocfl."""
