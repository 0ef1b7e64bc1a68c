"""Where webhooks may go."""

from ipaddress import ip_address

import pytest

from landbridge_alerting.addresses import AddressRefusedError, AllowList, check_url, choose, is_public, resolve
from landbridge_alerting.settings import parse_receivers

NOTHING = AllowList()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "2002:7f00:1::",
        "2002:a00:1::",
        "2001:0:53aa:64c:0:fbc3:f5ff:fffe",
        "2001:db8::1",
    ],
)
def test_local_and_private_addresses_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(AddressRefusedError, match="LANDBRIDGE_WEBHOOK_ALLOW"):
        choose("host", [ip_address(address)], NOTHING)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::8.8.8.8"])
def test_addresses_on_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(AddressRefusedError):
        choose("host", [ip_address("1.1.1.1"), ip_address("10.0.0.1")], NOTHING)


def test_private_targets_need_an_entry() -> None:
    allowed = AllowList.parse("10.0.0.0/8, alertmanager.monitoring.svc, fd00::/8")
    assert str(choose("x", [ip_address("10.9.9.9")], allowed)) == "10.9.9.9"
    assert str(choose("x", [ip_address("fd00::1")], allowed)) == "fd00::1"
    assert str(choose("alertmanager.monitoring.svc", [ip_address("172.20.0.5")], allowed)) == "172.20.0.5"
    with pytest.raises(AddressRefusedError):
        choose("x", [ip_address("172.20.0.5")], allowed)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://host/x",
        "file:///etc/passwd",
        "gopher://host",
        "http://",
        "http:///path",
        "http://host:99999/",
        "//host/x",
    ],
)
def test_other_schemes_and_urls_without_host_are_refused(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        check_url(url)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "[::ffff:7f00:1]", "0"],
)
async def test_no_spelling_of_this_machine_is_let_through(host: str) -> None:
    with pytest.raises((AddressRefusedError, OSError)):
        await resolve(f"http://{host}:9093/hook", NOTHING)


def test_receivers_are_refused_early_and_their_urls_are_not_told() -> None:
    assert parse_receivers("ops=https://a.example/x pager=http://b/y?z=1") == {
        "ops": "https://a.example/x",
        "pager": "http://b/y?z=1",
    }
    for bad in ("https://a.example/SECRET", "ops=ftp://a.example/SECRET", "o/ps=https://a.example/SECRET"):
        with pytest.raises(ValueError, match="expected") as caught:
            parse_receivers(bad)
        assert "SECRET" not in str(caught.value)
