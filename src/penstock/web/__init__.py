"""The web page: files that `make setup` builds from `ui/` into `static`."""
