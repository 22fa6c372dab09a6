"""Who may do what, and who did what."""
