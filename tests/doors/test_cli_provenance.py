"""`penstock provenance`, `verify` and `check` with faults, and over HTTP."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import AsyncClient, Client
from penstock.schema.admin import KeyRole
from tests.doors.arc_site import HERE, ArcSite, arc_site, dataset
from tests.doors.commands import Terminal

LOT = "20261115PT1H00"


@pytest.fixture
def site(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    monkeypatch.setenv("COLUMNS", "200")
    with arc_site(database_url) as made:
        monkeypatch.setenv("PENSTOCK_URL", made.server.server.url)
        made.register("tick", LOT)
        assert made.run("make", LOT)
        assert made.run("shout", LOT)
        yield made


@pytest.fixture
def penstock(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


def spoil(site: ArcSite, name: str) -> Path:
    """Overwrite a file of a dataset's lot."""
    path = sorted(site.folder.glob(f"data/**/name={name}/**/*.txt"))[0]
    path.write_text("spoilt")
    return path


def test_json_has_everything(site: ArcSite, penstock: Terminal) -> None:
    found = penstock("provenance", "shop/loud", LOT, "--json").document
    versions = {version["dataset"]: version for version in found["versions"]}
    assert list(versions) == ["loud", "raw", "tick"]
    assert versions["loud"]["inputs"] == [versions["raw"]["id"]]
    assert versions["loud"]["run"]["parts"] == 2
    assert versions["tick"]["outside"]["registeredBy"] == "local"
    assert {file["part"] for file in versions["loud"]["contents"]["files"]} == {"day=1", "day=2"}


def test_wrong_questions_are_refused(site: ArcSite, penstock: Terminal) -> None:
    both = penstock("provenance", "shop/loud", LOT, "--json", "--prov")
    assert (both.code, "choose one" in both.complaint) == (2, True)
    unknown = penstock("provenance", "shop/loud", "20261115PT1H07")
    assert unknown.code == 1
    assert "there is no lot 20261115PT1H07 of shop/loud" in unknown.complaint
    early = penstock("provenance", "shop/loud", LOT, "--as-of", "2001-01-01")
    assert (early.code, "had no version at 2001-01-01" in early.complaint) == (1, True)
    lost = penstock("verify", "shop/loud", "20261115PT1H07")
    assert (lost.code, "there is no lot" in lost.complaint) == (1, True)


def test_invalid_numbers_are_refused(site: ArcSite, penstock: Terminal) -> None:
    for flag in ("--depth", "--files"):
        refused = penstock("provenance", "shop/loud", LOT, flag, "-1")
        assert (refused.code, flag in refused.err) == (2, True)
    refused = penstock("lineage", "shop/loud", "--hops", "-1")
    assert (refused.code, "--hops" in refused.err) == (2, True)


@pytest.mark.parametrize("columns", [None, "60"])
def test_long_texts_are_not_cut(
    site: ArcSite, penstock: Terminal, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    monkeypatch.delenv("COLUMNS")
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    found = penstock("provenance", "shop/loud", LOT, "--json").document
    manifest = next((site.folder / "datasets").glob("**/name=loud/**/attempt=*/**/*.json"))
    manifest.write_text("spoilt")
    shown = penstock("provenance", "shop/loud", LOT).out
    if columns is not None:
        assert max(map(len, shown.splitlines())) == int(columns)
        shown = re.sub(r"[│├└─ ]*\n[│├└─ ]*", " ", shown)
    told = re.sub(r"\s", "", shown)
    loud, raw, _ = found["versions"]
    assert loud["run"]["jobVersion"] in told
    assert loud["contents"]["digest"] in told
    assert "wasrecordedwhenitwaspublished" in told
    assert all(file["digest"] in told for file in raw["contents"]["files"])


def test_repeated_versions_refer_to_the_first(site: ArcSite, penstock: Terminal) -> None:
    shout = {"workload": {"function": f"{HERE}:shout"}}
    for name, reads in (("far", ("raw",)), ("top", ("raw", "far", "loud"))):
        inputs = [{"dataset": each} for each in reads]
        site.declare(name, inputs=inputs, outputs=[{"dataset": name, "interval": "PT1H"}], **shout)
        assert site.run(name, LOT)
    lines = [
        line.partition("shop/")[2].split()[0] + ("^" if "drawn above" in line else "")
        for line in penstock("provenance", "shop/top", LOT).out.splitlines()
        if "■" in line
    ]
    assert [line for line in lines if line.endswith("^")] == ["raw^", "raw^"]
    for again in (each for each in lines if each.endswith("^")):
        assert lines.index(again.removesuffix("^")) < lines.index(again)


@pytest.mark.parametrize("dataset", ["raw", "loud"])  # whole, and by parts
def test_files_of_removed_versions_are_marked(
    site: ArcSite, penstock: Terminal, dataset: str
) -> None:
    before = penstock("provenance", f"shop/{dataset}", LOT, "--json").document["versions"][0]
    removed = penstock("lots", "remove", f"shop/{dataset}", LOT, "--why", "old", "--yes")
    assert removed.code == 0, removed.err
    shown = penstock("provenance", f"shop/{dataset}", LOT)
    assert "removed: 2 files, 32 B" in shown.out
    assert "more; --files" not in shown.out
    for file in before["contents"]["files"]:
        line = next(line for line in shown.out.splitlines() if file["digest"] in line)
        assert line.endswith("removed")
    verified = penstock("verify", f"shop/{dataset}", LOT)
    assert (verified.code, "the data of 1 version was removed before" in verified.out) == (0, True)


def test_fault_is_named_and_sets_the_exit_code(site: ArcSite, penstock: Terminal) -> None:
    path = spoil(site, "raw")
    assert penstock("verify", "shop/loud").code == 0
    found = penstock("verify", "shop/loud", "--upstream")
    assert (found.code, "1 is wrong" in found.out) == (1, True)
    assert "it has 6 bytes, and should have 16" in found.err
    told = penstock("verify", "shop/loud", LOT, "--upstream", "--json")
    said = json.loads(told.out)
    [fault] = said["faults"]
    assert (told.code, fault["where"]) == (1, path.as_uri().replace("%3D", "="))
    assert (fault["lot"], said["done"]["faults"], said["done"]["files"]) == (LOT, 1, 4)


def test_lost_manifest_is_shown_as_lost(site: ArcSite, penstock: Terminal) -> None:
    for manifest in (site.folder / "datasets").glob("**/name=raw/**/attempt=*/**/*.json"):
        manifest.unlink()
    shown = penstock("lots", "show", "shop/raw", LOT)
    assert (shown.code, "READY" in shown.out) == (1, True)
    assert f"the manifest of lot {LOT} of shop/raw should be there, and is not" in shown.complaint
    assert f"`penstock verify shop/raw {LOT}`" in shown.complaint
    told = penstock("lots", "show", "shop/raw", LOT, "--json")
    assert (told.code, told.out) == (1, "")
    assert penstock("lots", "show", "shop/tick", LOT).code == 0


def test_a_fault_of_a_manifest_names_it_once(site: ArcSite, penstock: Terminal) -> None:
    whole, parts = (
        list((site.folder / "datasets").glob(f"**/name={name}/**/attempt=*/**/*.json"))
        for name in ("raw", "loud")
    )
    whole[0].write_text("spoilt")
    [line] = penstock("verify", "shop/raw", LOT).err.splitlines()
    assert (line.count("attempt="), "was recorded when it was published" in line) == (1, True)
    [part, *_] = [path for path in parts if "part=" in str(path)]
    part.unlink()
    [line] = penstock("verify", "shop/loud", LOT).err.splitlines()
    assert str(part.relative_to(site.folder)) in line


def test_check_shows_violations(site: ArcSite, penstock: Terminal) -> None:
    spoil(site, "loud")
    assert penstock("check").code == 0
    found = penstock("check", "--deep")
    assert found.code == 1
    lines = found.out.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith("✗")]
    assert lines[at].startswith("✗ manifest-items (1): ")
    assert "it has 6 bytes" in lines[at + 1]
    assert "1 are broken" in found.err
    said = json.loads(penstock("check", "--deep", "--json").out)
    assert not said["holds"]
    [broken] = [each for each in said["invariants"] if not each["holds"]]
    assert (broken["name"], broken["broken"], len(broken["first"])) == ("manifest-items", 1, 1)


async def _verified(url: str) -> list[str]:
    async with AsyncClient(url) as client:
        steps = [step.kind async for step in client.verify("shop", "loud", LOT)]
        holds = [verdict.holds async for verdict in client.check()]
        found = await client.provenance("shop", "loud", LOT, depth=0)
    assert all(holds)
    assert len(found.versions) == 1
    return list(steps)


def test_both_clients_read_the_lines_as_they_come(site: ArcSite) -> None:
    url = site.server.server.url
    with Client(url) as client:
        steps = [step.kind for step in client.verify("shop", "loud", LOT)]
    assert steps[-1] == "end"
    assert asyncio.run(_verified(url))[-1] == "end"


def test_roles_limit_provenance(site: ArcSite) -> None:
    admin = site.key(KeyRole.ADMIN)
    reader, writer = site.key(KeyRole.READER), site.key(KeyRole.WRITER)
    one = site.key(KeyRole.ADMIN, "shop")
    client, lot = site.server.client, dataset("loud", "lots", LOT, "provenance")
    path = "/".join(("/api/v1", *lot))
    verify = "/".join(("/api/v1", *dataset("loud", "verify")))
    answers = [
        client.get(url, headers=key).status_code
        for url in (path, verify, "/api/v1/check")
        for key in (reader, writer, admin, one)
    ]
    assert answers == [200, 200, 200, 403, 403, 200, 200, 403, 403, 403, 200, 403]
