"""Places that others write to, where lots arrive."""

from penstock.errors import Invalid, Unavailable
from penstock.objects import Objects
from penstock.objects.keys import local_folder
from penstock.objects.uris import Place, find_place, open_store


def open_place(url: str) -> Objects:
    """The store at a place that others write to; a folder has to be there already.

    One that was made here would look like a place where nothing arrives.
    """
    folder = local_folder(url)
    if folder is not None and not folder.is_dir():
        raise Unavailable(f"there is no folder {folder}; make it, or mount what is to be there")
    return open_store(url)


def arriving_at(own: Objects, url: str) -> Place:
    """How the keys at such a place are written, in which our own store must not be."""
    place = find_place(own, url)
    folder, mine = local_folder(url), own.path("x")
    if folder is None:
        is_above = f"{own.url}/".startswith(place.uri(""))
    else:
        is_above = mine is not None and mine.parent.is_relative_to(folder.absolute())
    if is_above:
        raise Invalid(
            f"nothing can arrive at {url}: our own object store {own.url} is in it, and "
            "would arrive as well; name a folder of its own"
        )
    return place
