"""What each operation of the demo has to come to, and how its decision reads in one cell of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from landbridge.client import Operation


@dataclass(frozen=True, slots=True)
class Expectation:
    """The outcome, environment and least number of attempts that an example must have."""

    file: str
    outcome: str = "completed"
    environment: str = ""
    attempts: int = 1

    @property
    def name(self) -> str:
        """The operation's own name, which its file carries after the number."""
        return self.file.partition("-")[2].removesuffix(".yaml")

    def met_by(self, operation: Operation) -> bool:
        return (
            outcome_of(operation) == self.outcome
            and (not self.environment or operation.environment == self.environment)
            and operation.attempt >= self.attempts
        )

    def __str__(self) -> str:
        where = f" in {self.environment}" if self.environment else ""
        return f"{self.outcome}{where} after at least {self.attempts} attempt(s)"


EXPECTED = (
    Expectation("1-churn-train.yaml", environment="onprem-a"),
    Expectation("2-churn-evaluate.yaml", environment="onprem-a"),
    Expectation("3-sales-summary.yaml", environment="cloud-b"),
    Expectation("4-residents-report.yaml", environment="onprem-a"),
    Expectation("5-foundation-train.yaml", outcome="unplaceable", attempts=0),
    Expectation("6-flaky-import.yaml", attempts=2),
)


def outcome_of(operation: Operation) -> str:
    """Return the phase, or `unplaceable` for what waits because nothing can run it."""
    return "unplaceable" if operation.unplaceable else operation.phase


def why(explanation: Mapping[str, Any]) -> str:
    """Return one line an environment: chosen with its score, second best, or the first rules that it breaks."""
    lines = []
    for each in explanation.get("environments", ()):
        name, score = each["environment"], each.get("score")
        shown = f", score {score:.2f}" if score is not None else ""
        if each["chosen"]:
            lines.append(f"{name}: chosen{shown}")
        elif each["eligible"]:
            lines.append(f"{name}: eligible{shown}")
        else:
            lines.append(f"{name}: {_first(each.get('violations', ()))}")
    return "\n".join(lines) or "no decision is known yet"


def _first(violations: Any) -> str:
    if not violations:
        return "not eligible"
    first = violations[0]
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return f"{first['constraint']}: wanted {first['wanted']}, found {first['found']}{more}"
