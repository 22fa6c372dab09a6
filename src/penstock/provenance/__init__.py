"""Where a lot comes from, whether its bytes are what they were, and whether all promises hold."""
