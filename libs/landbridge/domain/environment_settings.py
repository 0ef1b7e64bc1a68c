"""What presets set for the environment in which an operation is placed (I5).

An accepted operation carries `environmentSettings: {<environment>: {env: {...}}}` beside its spec, because where it
will run is decided after it was accepted and its bytes never change. The environment applies its own part when it
takes the work. What is shown to people and what runs there are worked out here, by the same function.
"""

from collections.abc import Mapping
from typing import Final

FIELD: Final = "environmentSettings"


def variables_in(everywhere: Mapping[str, str], here: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of an operation in one environment: `here` is what presets set for that environment.

    A setting for one environment is more specific than one for all, so it wins over presets, component and project;
    the operation's own variables are not in `here`, they win over both. Returns `everywhere` itself if nothing is set.
    """
    return {**everywhere, **here} if here else everywhere
