"""Commands for the catalog."""
