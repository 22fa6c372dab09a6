"""What the client reads and shows without a server: names, documents, the package itself."""

import pytest

import penstock
from penstock.client import ClaimLost, Client, request
from penstock.client.names import Name, read_name
from penstock.errors import Invalid
from penstock.schema.catalog import EntityId
from penstock.schema.shape import Empty


@pytest.mark.parametrize(
    ("given", "namespace", "meant"),
    [
        ("shop/orders", None, ("shop", "orders")),
        ("orders", "shop", ("shop", "orders")),
        ("other/orders", "shop", ("other", "orders")),
        ("s3://lake/raw/orders", None, ("s3://lake", "raw/orders")),
        ("postgres://db:5432/public.orders", "shop", ("postgres://db:5432", "public.orders")),
        ("shop/a/b", None, ("shop", "a/b")),
        (("a/b", "c/d"), "shop", ("a/b", "c/d")),
    ],
)
def test_names_are_read_as_people_write_them(
    given: Name, namespace: str | None, meant: tuple[str, str]
) -> None:
    assert read_name(given, namespace) == EntityId(*meant)


@pytest.mark.parametrize("given", ["orders", "", "shop/"])
def test_a_name_without_a_namespace_is_refused(given: str) -> None:
    with pytest.raises(Invalid, match="NAMESPACE/NAME"):
        read_name(given)


def test_the_package_shows_the_client_and_nothing_that_is_not_there() -> None:
    assert penstock.Client is Client
    assert penstock.ClaimLost is ClaimLost
    with pytest.raises(AttributeError, match="nothing_like_this"):
        penstock.nothing_like_this  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", [".", "..", "", "\ud800"])
def test_a_path_holds_each_name_or_is_not_made(name: str) -> None:
    """httpx would make `/namespaces/food/datasets/..` the path of the namespace."""
    with pytest.raises(Invalid, match="name"):
        request.delete(Empty, "namespaces", "food", "datasets", name)
