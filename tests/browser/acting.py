"""Actions on the page: open the dialog, confirm it, wait for the toast."""

import re

from playwright.sync_api import Locator, Page, expect


def open_dialog(page: Page, button: str, within: Locator | None = None) -> Locator:
    """Click an action button and return its dialog."""
    (within or page.locator("main")).get_by_role("button", name=button, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    return dialog


def confirm(dialog: Locator, verb: str, why: str | None = None, typed: str | None = None) -> None:
    """Confirm the dialog, with a reason and the text that must be typed."""
    button = dialog.get_by_role("button", name=verb, exact=True)
    if typed is not None:
        expect(button).to_be_disabled()
        dialog.get_by_label(re.compile("^Type ")).fill(typed)
    if why is not None:
        dialog.get_by_label(re.compile("^Reason")).fill(why)
    button.click()


def expect_toast(page: Page, text: str) -> None:
    """Wait for the toast of a successful action."""
    expect(page.locator(".toast.tone-good", has_text=text).first).to_be_visible()
