"""Draw every view of the page, light and dark: `python -m tests.browser.pictures docs/images`."""

import sys
import tempfile
from pathlib import Path

from tests.browser.addresses import views
from tests.browser.browsing import PHONE, WIDE, Theme, chromium, tab
from tests.browser.scene import Scene, scene

THEMES: tuple[Theme, ...] = ("light", "dark")
ON_A_PHONE = ("overview", "dataset-lots", "lineage")


def main(folder: Path) -> None:
    """Fill a server, and write a picture of each view."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-pictures-") as place,
        scene(Path(place)) as filled,
    ):
        _draw(filled, folder)


def _draw(filled: Scene, folder: Path) -> None:
    shown = views(filled)
    with chromium() as browser:
        for theme in THEMES:
            with tab(browser, filled.url, WIDE, theme) as opened:
                for name, address in shown.items():
                    opened.open(address)
                    opened.settle()
                    opened.page.screenshot(path=folder / f"{name}-{theme}.png")
        with tab(browser, filled.url, PHONE) as opened:
            for name in ON_A_PHONE:
                opened.open(shown[name])
                opened.settle()
                opened.page.screenshot(path=folder / f"{name}-phone.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
