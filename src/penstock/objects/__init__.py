"""Object stores by URL: bytes under keys, in a local folder or a cloud bucket."""

from penstock.objects.store import Nameless, Objects, StoredEntry, mark_store

__all__ = ["Nameless", "Objects", "StoredEntry", "mark_store"]
