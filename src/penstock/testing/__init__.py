"""Tools for your own tests: a real server in your process, and arcs run inline.

with penstock.testing.server() as server, server.client() as client:
    server.put_lot("shop/orders", "20261115", {"a.csv": b"1,2"})
    made = server.run_arc(clean, "20261115")
    assert made.files == {"a.csv": b"1;2"}
"""

from importlib import import_module

__all__ = ["ArcFailed", "MadeLot", "Server", "server"]


def __getattr__(name: str) -> object:
    """Import lazily, so that the pytest plugin costs nothing where it is not used."""
    if name not in __all__:
        raise AttributeError(f"module 'penstock.testing' has no attribute {name!r}")
    attribute: object = getattr(import_module("penstock.testing.embedded"), name)
    return attribute
