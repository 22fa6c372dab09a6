"""The calls of the client about where lots come from, and whether all is as it should be."""

from typing import Any

from penstock.client.request import Empty, Lines, Request, call, get, read
from penstock.schema import provenance as docs


class ProvenanceCalls:
    """What a server knows of the past of lots, and finds out about their bytes."""

    @call
    def provenance(
        self,
        namespace: str,
        dataset: str,
        lot: str,
        *,
        as_of: str | None = None,
        depth: int | None = None,
        files: int | None = None,
    ) -> Request[docs.Provenance]:
        """What a version of a lot was made from: the one it has, or had at a time."""
        asked = {"asOf": as_of, "depth": depth, "files": files}
        return get(docs.Provenance, *_lot(namespace, dataset, lot), "provenance", **asked)

    @call
    def prov(
        self,
        namespace: str,
        dataset: str,
        lot: str,
        *,
        as_of: str | None = None,
        depth: int | None = None,
        files: int | None = None,
    ) -> Request[dict[str, Any]]:
        """The same in the words of W3C PROV, as a PROV-JSON document."""
        asked = {"asOf": as_of, "depth": depth, "files": files}
        return get(dict[str, Any], *_lot(namespace, dataset, lot), "prov", **asked)

    @call
    def _verify(
        self,
        namespace: str,
        dataset: str,
        *,
        lot: str | None = None,
        all_versions: bool | None = None,
        upstream: bool | None = None,
    ) -> Request[Empty]:
        """The lines of a verification; they come one by one, so that they are not called for."""
        asked = {"lot": lot, "allVersions": all_versions, "upstream": upstream}
        return get(Empty, "namespaces", namespace, "datasets", dataset, "verify", **asked)

    @call
    def _check(self, *, deep: bool | None = None) -> Request[Empty]:
        """The lines of a check; they come one by one, so that they are not called for."""
        return get(Empty, "check", deep=deep)

    @read
    def verify(
        self,
        namespace: str,
        dataset: str,
        lot: str | None = None,
        *,
        all_versions: bool = False,
        upstream: bool = False,
    ) -> Lines[docs.VerifyStep]:
        """Have the bytes of a lot, or of all lots of a dataset, read again: faults as found.

        The last step has the kind `end` and what it came to; without it, it was broken off.
        """
        asked = ProvenanceCalls._verify.request(
            namespace, dataset, lot=lot, all_versions=all_versions, upstream=upstream
        )
        return Lines(asked, docs.VerifyStep)

    @read
    def check(self, *, deep: bool = False) -> Lines[docs.Verdict]:
        """Ask of every invariant whether it holds; `deep` reads every byte."""
        return Lines(ProvenanceCalls._check.request(deep=deep), docs.Verdict)


def _lot(namespace: str, dataset: str, lot: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset, "lots", lot
