"""How long tests wait for what should have happened long ago, before they call it stuck."""

HANG_SECONDS = 300  # no machine is so slow
