"""Where the server is, when a program does not say it."""

from penstock.config import load


def place(url: str | None, api_key: str | None) -> tuple[str, str | None]:
    """The URL and the key: those given, or those of the settings.

    The key of the settings belongs to their URL, and goes to no other.
    """
    if url is not None:
        return url, api_key
    settings = load({}).settings
    return settings.url, api_key or settings.api_key
