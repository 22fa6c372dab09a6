"""Draw every view of the page, light and dark: `python -m tests.browser.pictures docs/images`."""

import base64
import struct
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests.browser.addresses import admin_views, ingest_views, views
from tests.browser.browsing import PHONE, THEMES, chromium, tab
from tests.browser.mill import add_mill
from tests.browser.scene import empty_scene, scene

ON_A_PHONE = ("overview", "dataset-lots", "lineage")
TO_PALETTE = Path(__file__).with_name("palette.js").read_text()
SIGNATURE = b"\x89PNG\r\n\x1a\n"
INDEXED = struct.pack(">BBBBB", 8, 3, 0, 0, 0)


def main(folder: Path) -> None:
    """Fill two servers, and write a picture of each view."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-pictures-") as place:
        for part in ("scene", "mill"):
            (Path(place) / part).mkdir()
        with scene(Path(place) / "scene") as filled, chromium() as browser:
            shown = views(filled)
            _draw(browser, filled.url, shown, folder)
            _draw_on_a_phone(browser, filled.url, shown, folder)
        with empty_scene(Path(place) / "mill") as empty, chromium() as browser:
            mill = add_mill(empty)
            _draw(browser, empty.url, {**ingest_views(mill), **admin_views(mill)}, folder)


def _draw(browser: Browser, url: str, shown: Mapping[str, str], folder: Path) -> None:
    with tab(browser, url) as opened:
        for name, address in shown.items():
            opened.open(address)
            opened.settle()
            for theme in THEMES:
                opened.wear(theme)
                _write(browser, folder / f"{name}-{theme}.png", opened.page.screenshot())
            opened.wear("light")


def _draw_on_a_phone(browser: Browser, url: str, shown: Mapping[str, str], folder: Path) -> None:
    with tab(browser, url, PHONE) as opened:
        for name in ON_A_PHONE:
            opened.open(shown[name])
            opened.settle()
            _write(browser, folder / f"{name}-phone.png", opened.page.screenshot())


def _write(browser: Browser, path: Path, picture: bytes) -> None:
    """Write a picture with a palette: a third of the size, and nobody sees the difference."""
    page = browser.new_page()
    found: dict[str, Any] = page.evaluate(TO_PALETTE, base64.b64encode(picture).decode())
    page.close()
    width, height = found["width"], found["height"]
    indexes = base64.b64decode(found["indexes"])
    rows = (b"\0" + indexes[at : at + width] for at in range(0, width * height, width))
    chunks = (
        (b"IHDR", struct.pack(">II", width, height) + INDEXED),
        (b"PLTE", base64.b64decode(found["palette"])),
        (b"IDAT", zlib.compress(b"".join(rows), 9)),
        (b"IEND", b""),
    )
    path.write_bytes(SIGNATURE + b"".join(_chunk(*each) for each in chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
