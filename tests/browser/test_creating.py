"""The creation of namespaces and datasets."""

import pytest
from playwright.sync_api import Browser, expect

from penstock.schema.admin import KeyRole
from tests.browser.acting import expect_toast
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.scene import Scene, empty_scene
from tests.browser.test_rights import MILL, come, guarded
from tests.running import ServerProcess

pytestmark = pytest.mark.xdist_group("browser")

__all__ = ["guarded"]


def fill(tab: Tab, button: str, **fields: str) -> None:
    """Open a dialog, fill in its form and send it."""
    tab.page.locator("main").get_by_role("button", name=button).first.click()
    dialog = tab.page.get_by_role("dialog", name=button)
    for label, text in fields.items():
        dialog.get_by_label(label.capitalize(), exact=True).fill(text)
    dialog.get_by_role("button", name="Create").click()


def test_namespace_and_dataset_are_created(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        empty_scene(tmp_path_factory.mktemp("creating")) as scene,
        open_tab(browser, scene.url) as tab,
    ):
        tab.open("/datasets")
        tab.settle()
        expect(tab.page.locator("main .empty")).to_contain_text("No dataset yet")

        fill(tab, "New namespace", name="shop", owner="ann", description="what is sold")
        expect_toast(tab.page, "Namespace shop is created.")
        expect(tab.page.get_by_role("combobox", name="Namespace")).to_have_value("shop")
        fill(tab, "New dataset", name="orders", description="one row each")
        expect_toast(tab.page, "Dataset orders is created.")
        expect(tab.page.locator("main h1")).to_contain_text("orders")

        namespace = scene.call("GET", "namespaces", "shop")
        assert (namespace["ownerName"], namespace["description"]) == ("ann", "what is sold")
        at = ("namespaces", "shop", "datasets", "orders")
        assert scene.call("GET", *at)["description"] == "one row each"


def test_dialog_shows_that_a_name_exists(tab: Tab, scene: Scene) -> None:
    tab.open("/datasets")
    tab.settle()

    fill(tab, "New namespace", name="default")

    dialog = tab.page.get_by_role("dialog", name="New namespace")
    expect(dialog.get_by_role("alert")).to_contain_text("'default' is there already")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("default")
    tab.forgive("409")


def test_create_buttons_depend_on_the_key(browser: Browser, guarded: ServerProcess) -> None:
    both = ["New namespace", "New dataset"]
    for role, namespace, acts in (
        (KeyRole.ADMIN, None, both),
        (KeyRole.WRITER, None, both),
        (KeyRole.WRITER, MILL, both[1:]),
        (KeyRole.READER, None, []),
    ):
        with open_tab(browser, guarded.url) as opened:
            page = come(opened, f"/datasets?namespace={MILL}", guarded.key(role, namespace))
            expect(page.locator("main")).to_contain_text("grain")
            expect(page.locator("main .page-head .button")).to_have_text(acts)
