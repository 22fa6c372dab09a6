"""How other programs are called: what is read for it, and what is not."""

import ssl

import httpx
import pytest

from penstock.outgoing import certificates, is_near


@pytest.mark.parametrize("trust_env", [False, True])
def test_http_needs_no_certificates_and_then_trusts_nobody(trust_env: bool) -> None:
    context = certificates("http://example.org/x", trust_env=trust_env)
    assert context.cert_store_stats()["x509_ca"] == 0
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("url", ["https://example.org/x", "HTTPS://example.org"])
def test_https_has_all_authorities(url: str) -> None:
    context = certificates(url, trust_env=False)
    expected = httpx.create_ssl_context(trust_env=False).cert_store_stats()
    assert context.cert_store_stats() == expected
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:5000", True),
        ("http://[::1]:5000/x", True),
        ("https://localhost", True),
        ("http://127.0.0.1.example.org", False),
        ("http://example.org/localhost", False),
    ],
)
def test_this_machine_is_reached_without_a_proxy(url: str, near: bool) -> None:
    assert is_near(url) is near
