import pytest

from brokerage_app.formulas.connectivity import refuses


@pytest.mark.parametrize(
    ("published", "accepted"),
    [
        ("full", ["full", "http", "none", ""]),
        ("http", ["http", "none", ""]),
        ("none", ["none", ""]),
        ("", [""]),
        (None, [""]),
        ("some", [""]),
    ],
)
def test_networks(published: str | None, accepted: list[str]) -> None:
    assert [asked for asked in ("full", "http", "none", "") if refuses(published, asked) is None] == accepted


@pytest.mark.parametrize(
    ("published", "accepted"),
    [
        ("full#IPv4", ["IPv4", ""]),
        ("full#IPv6", ["IPv6", ""]),
        ("full", [""]),
        ("full#", [""]),
        ("#IPv6", ["IPv6", ""]),
    ],
)
def test_stacks(published: str, accepted: list[str]) -> None:
    assert [asked for asked in ("IPv4", "IPv6", "") if refuses(published, "", asked) is None] == accepted


def test_both_parts_are_asked() -> None:
    assert refuses("http#IPv4", "http") is None
    assert refuses("http#IPv4", "http", "IPv4") is None
    refused = refuses("http#IPv4", "full")
    assert refused is not None and refused.code == "no_connectivity"
    assert refused.detail == "asks for outbound network full; the site's nodes have http#IPv4"
    refused = refuses("http#IPv4", "http", "IPv6")
    assert refused is not None and refused.detail == "asks for IP stack IPv6; the site's nodes have http#IPv4"
