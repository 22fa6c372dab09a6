"""The HTTP server: the metadata API of Marquez and OpenLineage, and Penstock's additions."""
