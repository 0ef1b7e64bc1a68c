"""The library that evaluates CEL, loaded when the first rule needs it.

Only its compiled part: the package around it imports tools for terminals, which cost every process half a second.
"""

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


@cache
def library() -> Any:
    """Return the module that has `compile`. Raises ImportError if common-expression-language is not installed."""
    package = find_spec("cel")
    found = PathFinder.find_spec("cel", package.submodule_search_locations) if package is not None else None
    if found is None or found.loader is None:
        raise ImportError("no module for CEL; expected the package common-expression-language")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module
