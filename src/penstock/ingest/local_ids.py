"""Local ids: the depositor's own names for an object."""

from penstock.errors import Invalid

# With its owner and namespace it is the key of a row, and PostgreSQL takes 2,704 bytes for that.
LOCAL_ID_BYTES_MAX = 1_000


def read_local_ids(text: str | None) -> tuple[str, ...]:
    """The local ids in a text, divided by semicolons, each once, or Invalid."""
    names = tuple(dict.fromkeys(name for part in (text or "").split(";") if (name := part.strip())))
    for name in names:
        length = len(name.encode(errors="surrogatepass"))
        if length > LOCAL_ID_BYTES_MAX:
            raise Invalid(
                f"the local id {name[:64]!r}… has {length:,} bytes; at most "
                f"{LOCAL_ID_BYTES_MAX:,} are taken"
            )
    return names
