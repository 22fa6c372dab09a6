"""The command line: one file per capability."""
