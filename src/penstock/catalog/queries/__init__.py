"""Read queries of the catalog."""
