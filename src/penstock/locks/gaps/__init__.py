"""Missing lots of a dataset and their causes."""
