"""ZooKeeper URLs."""

import pytest

from penstock.errors import Invalid
from penstock.zookeeper import Address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("zookeeper://zk", Address(("zk:2181",))),
        ("zookeeper://zk:99/", Address(("zk:99",))),
        ("zookeeper://10.0.0.1:2182/a", Address(("10.0.0.1:2182",), "/a")),
        ("zookeeper://a:1,b,c.d:3/e/f/", Address(("a:1", "b:2181", "c.d:3"), "/e/f")),
        ("zookeeper://[::1]:2181,[fe80::1]/x", Address(("[::1]:2181", "[fe80::1]:2181"), "/x")),
        ("zookeeper://u:p%40%3a@zk/x", Address(("zk:2181",), "/x", "u", "p@:")),
    ],
)
def test_a_url_names_hosts_folder_and_account(url: str, address: Address) -> None:
    assert Address.parse(url) == address


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("zk:2181", "'zk:2181' does not begin a ZooKeeper URL"),
        ("http://zk", "'http' does not begin a ZooKeeper URL"),
        ("zookeeper://", "'' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a,,b", "'' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a:0", "'a:0' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a:65536", "'a:65536' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a:x/y", "'a:x' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a b/y", "'a b' in the ZooKeeper URL is not host:port"),
        ("zookeeper://a//b", "'' is no name in it"),
        ("zookeeper://a/b/../c", "'..' is no name in it"),
        ("zookeeper://a/b?c=d", "is no name in it"),
        ("zookeeper://a/b c", "is no name in it"),
        ("zookeeper://a/zookeeper/x", "belongs to ZooKeeper itself"),
        ("zookeeper://user@a/x", "not both a user and a password"),
        ("zookeeper://:secret@a/x", "not both a user and a password"),
    ],
)
def test_any_other_url_is_refused_with_a_reason(url: str, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        Address.parse(url)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_password_is_not_shown() -> None:
    address = Address.parse("zookeeper://ann:secret@a:1,b/x")
    assert str(address) == "zookeeper://ann@a:1,b:2181/x"
