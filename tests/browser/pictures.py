"""Take screenshots of every view: `python -m tests.browser.pictures FOLDER DOCS`."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.addresses import admin_views, ingest_views, views
from tests.browser.browsing import PHONE, THEMES, chromium, tab
from tests.browser.mill import add_mill
from tests.browser.scene import empty_scene, scene

ON_A_PHONE = ("overview", "dataset-lots", "lineage")


def main(folder: Path, docs: Path) -> None:
    """Fill two servers, write screenshots to a folder, and update those of the docs."""
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
    for picture in docs.glob("*.png"):
        shutil.copy(folder / picture.name, picture)


def _draw(browser: Browser, url: str, shown: Mapping[str, str], folder: Path) -> None:
    with tab(browser, url) as opened:
        for name, address in shown.items():
            opened.open(address)
            opened.settle()
            for theme in THEMES:
                opened.wear(theme)
                opened.redraw()
                opened.page.screenshot(path=folder / f"{name}-{theme}.png")
            opened.wear("light")


def _draw_on_a_phone(browser: Browser, url: str, shown: Mapping[str, str], folder: Path) -> None:
    with tab(browser, url, PHONE) as opened:
        for name in ON_A_PHONE:
            opened.open(shown[name])
            opened.settle()
            opened.page.screenshot(path=folder / f"{name}-phone.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
