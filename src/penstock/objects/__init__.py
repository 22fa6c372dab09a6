"""Objects by URL: bytes under keys, in a local folder or in the store of a cloud."""

from penstock.objects.store import Entry, Nameless, Objects, mark_store

__all__ = ["Entry", "Nameless", "Objects", "mark_store"]
