"""The page in a real browser; it is one package, so that one browser does for all its tests."""
