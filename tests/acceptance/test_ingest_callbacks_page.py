"""What docs/callbacks.md says to those who are called back is so."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.clock import SECOND, system_clock
from penstock.signing import sign
from tests.acceptance.ingest_site import Site
from tests.web import content

PAGE = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text()
BODY = b'{"status":"completed"}'


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_a_receiver_accepts_only_signatures_as_documented() -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), "callbacks.md", "exec"), names)
    is_ours: Callable[[str, str, bytes], bool] = names["is_ours"]
    now = system_clock()
    assert is_ours("hush", sign("hush", BODY, now), BODY)
    assert not is_ours("hush", sign("other", BODY, now), BODY)
    assert not is_ours("hush", sign("hush", BODY, now), BODY + b" ")
    assert not is_ours("hush", sign("hush", BODY, now - 301 * SECOND), BODY)


def test_a_callback_has_the_documented_fields(site: Site) -> None:
    site.run(site.deposit(site.web.on("/map.tif", content(b"map")), local_id="loc1"))
    [call] = site.receiver.calls
    assert call.said.keys() == json.loads(block("json")).keys()
