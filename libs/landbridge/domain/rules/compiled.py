"""An expression ready to be evaluated: checked, bounded, compiled once for all who use it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.requirements import Requirements
from landbridge.domain.rules.check import check
from landbridge.domain.rules.contexts import Contexts
from landbridge.domain.rules.facts import OPERATION_FIELDS, Reads, environment_facts, operation_facts
from landbridge.domain.rules.library import library
from landbridge.domain.rules.parse import parse
from landbridge.domain.rules.variables import ENVIRONMENT, OPERATION, VARIABLES
from landbridge.domain.rules.words import ExpressionError

MOST_COMPILED: Final = 1_000
_LONGEST_TOLD: Final = 200


class Compiled(NamedTuple):
    """A compiled expression. `reads` are the fields that it reads, by the thing that has them."""

    program: Any
    steps: int
    reads: Reads
    contexts: Contexts

    @property
    def requirements(self) -> frozenset[str]:
        """Return the fields of the requirements that the answer follows from."""
        return frozenset(field for name in self.reads.get(OPERATION, ()) for field in OPERATION_FIELDS[name][0])

    @property
    def reads_environment(self) -> bool:
        """Tell whether the answer may differ from environment to environment."""
        return ENVIRONMENT in self.reads

    def asks(self, requirements: Requirements) -> object:
        """Return the values of those fields."""
        return self.contexts.reader(requirements)

    def evaluate(self, requirements: Requirements, candidate: Candidate) -> bool | str:
        """Return whether the condition holds, or in words why it cannot be told."""
        variables = {OPERATION: operation_facts(requirements, self.reads)}
        if self.reads_environment:
            variables[ENVIRONMENT] = environment_facts(candidate, self.reads)
        return self._execute(variables)

    def evaluate_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], wanted: Sequence[bool]
    ) -> list[bool | str]:
        """Return what `evaluate` returns for every candidate that is wanted, and for others anything."""
        operation = operation_facts(requirements, self.reads)
        found: list[bool | str] = []
        # By the context's identity: environments that look the same are asked once.
        answers: dict[int, tuple[Any, bool | str]] = {}
        for candidate, ask in zip(candidates, wanted, strict=True):
            if not ask:
                found.append(True)
                continue
            context = self.contexts.of(candidate, self.reads)
            answered = answers.get(id(context))
            if answered is None:
                context.add_variable(OPERATION, operation)
                answered = answers[id(context)] = context, self._execute(context)
            found.append(answered[1])
        return found

    def _execute(self, variables: Any) -> bool | str:
        try:
            found = self.program.execute(variables)
        except KeyError as error:
            return f"{error.args[0]} is not stated; ask has(…) first"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no permission
            return (str(error).partition("\n")[0] or type(error).__name__)[:_LONGEST_TOLD]
        return found if isinstance(found, bool) else f"it gives {type(found).__name__}, not a condition"


@lru_cache(maxsize=MOST_COMPILED)
def compile_expression(expression: str) -> Compiled:
    """Check and compile an expression. Raises ExpressionError with the place of what does not fit."""
    checked = check(parse(expression), VARIABLES)
    try:
        program = library().compile(expression)
    except Exception as error:
        message = str(error).partition("\n")[0][:_LONGEST_TOLD]
        raise ExpressionError(0, f"it cannot be compiled: {message}") from error
    reads = {thing: frozenset(name for of, name in checked.reads if of == thing) for thing, _ in checked.reads}
    return Compiled(program, checked.steps, reads, Contexts(reads))
