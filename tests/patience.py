"""How long tests wait before they fail as stuck."""

HANG_SECONDS = 300  # longer than any slow machine needs
