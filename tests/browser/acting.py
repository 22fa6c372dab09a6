"""Buttons that ask before they act: clicked, answered, and heard."""

import re

from playwright.sync_api import Locator, Page, expect


def ask(page: Page, button: str, within: Locator | None = None) -> Locator:
    """Click a button that asks first; the question is what comes back."""
    (within or page.locator("main")).get_by_role("button", name=button, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    return dialog


def agree(dialog: Locator, verb: str, why: str | None = None, typed: str | None = None) -> None:
    """Say yes, with a reason, and with what must be typed."""
    yes = dialog.get_by_role("button", name=verb, exact=True)
    if typed is not None:
        expect(yes).to_be_disabled()
        dialog.get_by_label(re.compile("^Type ")).fill(typed)
    if why is not None:
        dialog.get_by_label(re.compile("^Reason")).fill(why)
    yes.click()


def hear(page: Page, words: str) -> None:
    """Wait until the page says that it was done."""
    expect(page.locator(".toast.tone-good", has_text=words).first).to_be_visible()
