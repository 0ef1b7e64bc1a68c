"""The files of a site with its own NATS, as `env join --leaf` writes them."""

from pathlib import Path
from typing import Any

from landbridge.cli.files import write_private

NATS_URL = "nats://127.0.0.1:4222"


def write_leaf_site(name: str, answer: dict[str, Any], bindings: str, place: Path) -> None:
    """Write what the site's NATS and its dispatcher need, and say how to start both.

    Secrets are written anew, but the dispatcher's key and the configuration, which people change, stay once they exist.
    """
    from landbridge.bus.configuration import LeafSettings, leaf_config, new_user, site_domain
    from landbridge.bus.jwt import key_from_seed

    seed, config = place / "dispatcher.nkey", place / "nats.conf"
    if not seed.exists():
        write_private(seed, new_user().seed + "\n")
    write_private(place / "leaf.creds", str(answer["creds"]))
    kept = config.exists()
    if not kept:
        user = key_from_seed(seed.read_text()).public
        write_private(config, leaf_config(LeafSettings(name, str(answer["leafUrl"]), user)))
    if bindings:
        write_private(place / "bindings.yaml", bindings)
    settings = {
        "LANDBRIDGE_ENVIRONMENT": name,
        "LANDBRIDGE_NATS_URL": NATS_URL,
        "LANDBRIDGE_NATS_DOMAIN": site_domain(name),
        "LANDBRIDGE_NATS_NKEY": seed.name,
        "LANDBRIDGE_DATA_DIR": ".",
        "LANDBRIDGE_BINDINGS": "bindings.yaml",
    }
    write_private(place / "dispatcher.env", "".join(f"{key}={value}\n" for key, value in settings.items()))
    extra = ", bindings.yaml" if bindings else ""
    print(f"written to {place}: leaf.creds, dispatcher.nkey, dispatcher.env{extra}{'' if kept else ', nats.conf'}")
    if kept:
        print(f"{config} stays as it is; remove it first to have it written anew")
    print(f"Start at the site, each in {place}:")
    print("  nats-server --config nats.conf")
    print("  set -a && . ./dispatcher.env && landbridge-dispatcher")
