"""Object stores by URL: bytes under keys, in a local folder or a cloud bucket."""

from penstock.objects.store import Entry, Nameless, Objects, mark_store

__all__ = ["Entry", "Nameless", "Objects", "mark_store"]
