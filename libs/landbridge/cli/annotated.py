"""A document as YAML for people, with a remark beside each value; without the remarks it is the same document."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from landbridge.cli import output
from landbridge.domain.documents.places import Path, path_text
from landbridge.domain.documents.scalars import resolve

_FLOW_MAX: Final = 72  # columns of a list that stays on one line
_COLUMN_MAX: Final = 64  # remarks stand below each other up to here
_STR: Final = "tag:yaml.org,2002:str"
Line = tuple[str, str]
"""A line of YAML, and the remark for it."""


def print_annotated(value: Mapping[str, Any], remarks: Mapping[str, str]) -> None:
    """Print a document; `remarks` has what stands beside the value at a path, as `path_text` writes it."""
    for text, told in _aligned(value, remarks):
        print(f"{text}  {output.styled(f'# {told}', 'dim')}" if told else text)


def annotated_text(value: Mapping[str, Any], remarks: Mapping[str, str]) -> list[str]:
    """Return the lines of a document with its remarks, as for a file."""
    return [f"{text}  # {told}" if told else text for text, told in _aligned(value, remarks)]


def _aligned(value: Mapping[str, Any], remarks: Mapping[str, str]) -> list[Line]:
    lines = list(_map(value, (), "", remarks))
    column = min(max((len(text) for text, told in lines if told), default=0), _COLUMN_MAX)
    return [(text.ljust(column) if told else text, told) for text, told in lines]


def document_text(value: Mapping[str, Any]) -> str:
    """Return a document as YAML, as people write it."""
    return "".join(f"{text}\n" for text, _ in _map(value, (), "", {}))


def _map(value: Mapping[str, Any], path: Path, pad: str, remarks: Mapping[str, str]) -> Iterator[Line]:
    for key, item in value.items():
        here = (*path, key)
        if isinstance(item, Mapping) and item:
            yield f"{pad}{_key(key)}", ""
            yield from _map(item, here, f"{pad}  ", remarks)
            continue
        first, *rest = _entry(key, item)
        yield pad + first, remarks.get(path_text(here), "")
        # An empty line of a text in block form stays empty.
        yield from ((pad + line if line else "", "") for line in rest)


def _key(key: str) -> str:
    return _dump({key: 0}, flow=False).removesuffix(" 0\n")


def _entry(key: str, value: object) -> list[str]:
    """Return the lines of one entry; a short list of plain values stays on one."""
    if isinstance(value, list) and value and not any(isinstance(each, dict | list) for each in value):
        text = f"{_key(key)} {_dump(value, flow=True)}".rstrip("\n")
        if "\n" not in text and len(text) <= _FLOW_MAX:
            return [text]
    return _dump({key: value}, flow=False).rstrip("\n").split("\n")


def _dump(value: object, *, flow: bool) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks, and everything out in full."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class asks of each value
            return True

    def text(dumper: Any, value: str) -> Any:
        # Empty lines at the end of a block would be lost with those that part entries.
        block = value.strip("\n") and not value.endswith("\n\n")
        style = None if "\n" not in value else "|" if block else '"'
        if value and "\n" not in value and dumper.resolve(yaml.ScalarNode, value, (True, False)) == _STR:
            # Plain for YAML of 1.1, and something else, or in doubt, for whoever reads it here: such as 09.
            style = None if resolve(value) == (value, None) else '"'
        return dumper.represent_scalar(_STR, value, style=style)

    Dumper.add_representer(str, text)
    dumped: str = yaml.dump(
        value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=flow
    )
    return dumped
