"""Where in the text each key and value of a document stands, and how a path is written."""

import re
from dataclasses import dataclass, field
from typing import Final

from landbridge.domain.documents.credentials import HIDDEN, credential_in

Path = tuple[str | int, ...]
Place = tuple[int, int]  # line and column, from 1

NOWHERE: Place = (0, 0)
_ODD: Final = re.compile(r"[.\[\]\"\s]")


def path_text(path: Path) -> str:
    """Write `("spec", "args", 0)` as `spec.args[0]`; keys that would read as a path are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif len(part) >= 12 and credential_in(part):
            text += f".{HIDDEN}"
        elif part and not any(c in part for c in '.[]" \t\n'):
            text += f".{part}" if text else part
        else:
            text += '["' + part.replace('"', '\\"')[:60] + '"]'
    return text


@dataclass(slots=True)
class Places:
    """Places by path. Values and keys are kept apart: an unknown field is shown at its key, a wrong value at itself."""

    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)

    def of_key(self, path: Path) -> Place:
        """Return the place of the key of `path`, else of its value, else of its nearest known parent."""
        return self.keys.get(path) or self.of_value(path)

    def of_value(self, path: Path) -> Place:
        """Return the place of the value at `path`, else of its nearest known parent."""
        while path:
            place = self.values.get(path)
            if place is not None:
                return place
            path = path[:-1]
        return self.values.get((), NOWHERE)
