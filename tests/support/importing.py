"""The declarations that imports are tested with, and what each is to become.

`python -m support.importing` (from `tests`) writes the expected files anew; read the difference before it is committed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from landbridge.cli.annotated import document_text
from landbridge.domain.importing import Imported, import_declarations

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importing"
_ENDINGS = (".dstack.yml", ".yaml")


@dataclass(frozen=True)
class Declaration:
    """One file. `names` and `project` are what a person would give with it."""

    format: str
    path: Path
    project: str
    names: dict[str, str]

    def __str__(self) -> str:
        return f"{self.format}/{self.name}"

    @property
    def name(self) -> str:
        return next(self.path.name.removesuffix(end) for end in _ENDINGS if self.path.name.endswith(end))

    @property
    def expected(self) -> Path:
        return FIXTURES / "expected" / self.format / f"{self.name}.yaml"

    def imported(self, **more: str) -> Imported:
        def change(document: dict[str, Any]) -> None:
            if self.project:
                document["metadata"]["project"] = self.project

        (found,) = import_declarations(self.path.read_bytes(), names={**self.names, **more}, change=change)
        assert isinstance(found, Imported), found.text(self.path.name)
        return found


def declarations() -> Iterator[Declaration]:
    """Yield every file."""
    given = yaml.safe_load((FIXTURES / "names.yaml").read_text())
    for folder in sorted(each for each in FIXTURES.iterdir() if each.is_dir() and each.name != "expected"):
        for path in sorted(folder.iterdir()):
            plain = Declaration(folder.name, path, "", {})
            with_it = given.get(str(plain), {})
            yield Declaration(folder.name, path, with_it.get("project", ""), with_it.get("names", {}))


if __name__ == "__main__":
    for each in declarations():
        each.expected.parent.mkdir(parents=True, exist_ok=True)
        each.expected.write_text(document_text(each.imported().members()))
