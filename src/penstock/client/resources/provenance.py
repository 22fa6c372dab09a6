"""Calls of provenance, verification and invariants."""

from typing import Any

from penstock.client.request import Lines, Request, call, get, read
from penstock.schema import provenance as docs
from penstock.schema.shape import Empty


class ProvenanceCalls:
    """Calls of provenance, verification and invariants."""

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
        """The provenance of a lot's current version, or of the one at a time."""
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
        """The provenance of a lot as a W3C PROV-JSON document."""
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
        """The request for a streamed verification."""
        asked = {"lot": lot, "allVersions": all_versions, "upstream": upstream}
        return get(Empty, "namespaces", namespace, "datasets", dataset, "verify", **asked)

    @call
    def _check(self, *, deep: bool | None = None) -> Request[Empty]:
        """The request for a streamed check."""
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
        """Verify the bytes of a lot, or of all lots of a dataset; yield progress and faults.

        The last step has the kind `end` and the totals; without it, the check was cut off.
        """
        asked = ProvenanceCalls._verify.request(
            namespace, dataset, lot=lot, all_versions=all_versions, upstream=upstream
        )
        return Lines(asked, docs.VerifyStep)

    @read
    def check(self, *, deep: bool = False) -> Lines[docs.Verdict]:
        """Check every invariant; `deep` reads every byte."""
        return Lines(ProvenanceCalls._check.request(deep=deep), docs.Verdict)


def _lot(namespace: str, dataset: str, lot: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset, "lots", lot
