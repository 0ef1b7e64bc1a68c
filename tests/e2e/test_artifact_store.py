"""An artifact store that cannot be reached takes its environment out of the running, and lets it back in."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.instance import Instance
from support.wait import wait_until

pytestmark = [pytest.mark.xdist_group("instance"), pytest.mark.timeout(240)]

SITE, CONNECTION = "onprem-a", "models"
PROBE_PERIOD_S = 15.0
# The probe's own time, its way to the centre, and a machine that does other things too.
ALLOWANCE_S = 10.0
USES_THE_STORE = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {{name: {name}, project: retail-eu}}
spec:
  type: job
  queue: batch
  command: [bash, -c, "echo weights > $LANDBRIDGE_OUTPUT_MODEL/weights"]
  outputs: {{model: {{connection: models, replication: regional, retention: 30d}}}}
  resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}
  identity: trainer
  lifecycle: {{expectedDuration: 1s, timeout: 1m, disconnection: {{policy: continue}}}}
  dataClass: restricted
"""


def store_of(instance: Instance) -> Path:
    """Return the directory that the site has bound the connection to."""
    home = instance.data / "environments" / SITE
    bound = yaml.safe_load((home / "bindings.yaml").read_text())["connections"][CONNECTION]
    return home / str(bound["directory"])


def verdict(instance: Instance, operation: str) -> dict[str, Any]:
    environments = instance.json("explain", operation)["environments"]
    return next((dict(item) for item in environments if item["environment"] == SITE), {})


def submit(instance: Instance, folder: Path, name: str) -> str:
    file = folder / f"{name}.yaml"
    file.write_text(USES_THE_STORE.format(name=name))
    return str(json.loads(instance.run("submit", str(file), "-o", "json").stdout)["operation"])


async def test_an_unreachable_artifact_store_makes_its_environment_ineligible_until_it_returns(
    instance: Instance, tmp_path: Path
) -> None:
    store = store_of(instance)
    away = store.with_name(f"{store.name}.away")
    store.rename(away)
    try:
        gone = time.monotonic()
        waiting = ""

        def is_ineligible() -> bool:
            nonlocal waiting
            waiting = submit(instance, tmp_path, f"store-{time.monotonic_ns()}")
            found = verdict(instance, waiting)
            # Until the probe has told, the site itself refuses such work, which is judged anew for other reasons.
            return bool(found) and not found["eligible"] and CONNECTION in json.dumps(found["violations"])

        await wait_until(is_ineligible, f"{SITE} is ineligible without {CONNECTION}", timeout_s=60, every_s=0.5)
        assert time.monotonic() - gone <= PROBE_PERIOD_S + ALLOWANCE_S
    finally:
        if away.exists():
            away.rename(store)

    def has_run() -> bool:
        found = instance.json("get", "operation", waiting)
        return (found["phase"], found["environment"]) == ("completed", SITE)

    await wait_until(has_run, "what waited for the store has run", timeout_s=60, every_s=0.5)
