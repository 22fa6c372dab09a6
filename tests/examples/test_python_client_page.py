"""The code on docs/python-client.md does what the page says."""

import re
from pathlib import Path

import pytest

from penstock.testing import server

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "python-client.md"


def test_every_block_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.syspath_prepend(TOP / "examples")
    names: dict[str, object] = {"__name__": "page"}
    with server() as site:
        monkeypatch.setenv("PENSTOCK_URL", site.url)
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
        assert site.client().job_lots("shop", "clean", state="DONE").total_count == 2
    assert capsys.readouterr().out == "20261114 1\n20261115 1\n"
