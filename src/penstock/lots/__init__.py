"""What a dataset consists of: its lots."""
