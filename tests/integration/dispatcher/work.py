"""Commands for work that behaves in a known way, whichever executor runs it."""

import sys

from integration.dispatcher.site import Site


def work(site: Site, *, seconds: float = 0.0, exit_code: int = 0, log: str = "ran") -> list[str]:
    if "name: simulated" in (site.home / "bindings.yaml").read_text():
        return ["simulate", f"duration={round(seconds * 1000)}ms", f"exit={exit_code}", f"log={log}"]
    program = f"import sys, time; print({log!r}, flush=True); time.sleep({seconds}); sys.exit({exit_code})"
    return [sys.executable, "-S", "-c", program]
