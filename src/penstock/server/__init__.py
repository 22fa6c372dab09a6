"""The HTTP door: the metadata API of Marquez and OpenLineage, and Penstock's own additions."""
