"""`simulate`: try policies on a trace of work before using them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Format, Output
from landbridge.cli.output import Column

if TYPE_CHECKING:
    from landbridge.domain.preferences import Observed
    from landbridge_ranking.whatif.measures import Report, Waits
    from landbridge_ranking.whatif.simulate import Compared

_REASONS_SHOWN = 5
_EXCEEDED_SHOWN = 3


def add_to(app: typer.Typer) -> None:
    app.command()(simulate)


def simulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A document of kind Scenario.")],
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Work instead of the scenario's file.", show_default=False),
    ] = None,
    machines: Annotated[
        Path | None,
        typer.Option("--machines", metavar="FILE", help="Machines instead of the scenario's.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Write a picture, as SVG.", show_default=False)
    ] = None,
    form: Output = Format.TABLE,
) -> None:
    """Try policies on a trace of work, on virtual time.

    The work goes through the code that decides in production. Needs no instance and changes nothing. Every environment
    is taken to be connected and proven; it does as the scenario says, and rankings follow what is observed of it. Ends
    with 1 if a limit was ever exceeded, which would be a defect.
    """
    from landbridge_ranking.whatif.problems import ScenarioError
    from landbridge_ranking.whatif.simulate import simulate as run

    try:
        with _Progress() as progress:
            found = run(scenario, progress.tell, trace=trace, machines_file=machines)
    except ScenarioError as error:
        raise CliError(str(error), Exit.INVALID) from error
    if plot is not None:
        _draw(plot, found)
    if not output.emit(_plain(found), form):
        _print(found)
    if any(report.exceeded for report in found.reports.values()):
        raise typer.Exit(int(Exit.FAILED))


class _Progress:
    """A line on a terminal's standard error that is written over."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("reading").__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is not None:
            self._status.__exit__(*exc)

    def tell(self, policy: str, done: int, of: int) -> None:
        if self._status is not None and (done % 100 == 0 or done == of):
            self._status.update(f"{policy}: {done:,} of {of:,} operations have ended")


def _draw(file: Path, found: "Compared") -> None:
    from landbridge_ranking.whatif.plot import draw

    try:
        file.write_text(draw(f"{found.name}: {found.operations:,} operations", found.reports))
    except OSError as error:
        raise CliError(f"--plot {file}: cannot be written: {error.strerror}") from error


# -- for people --------------------------------------------------------------------------------------------------------


def _print(found: "Compared") -> None:
    print(f"{found.name}: {found.operations:,} operations, {found.seconds:.1f} s to simulate\n")
    reports = found.reports
    output.table(
        (
            Column("POLICY", styled=True),
            *(Column(title, right=True) for title in ("PLACED", "WAIT MEAN", "P50", "P95", "P99", "LONGEST")),
            *(
                Column(title, right=True)
                for title in ("DEVICES", "PEAK", "COST", "G/KWH", "FAIRNESS", "DISPLACED", "LET DOWN")
            ),
        ),
        [_row(name, report) for name, report in reports.items()],
    )
    print("\nMean share in use while work arrived, of what is used most")
    environments = sorted({name for report in reports.values() for name in report.utilisation})
    output.table(
        (Column("POLICY"), *(Column(name.upper(), right=True) for name in environments)),
        [(name, *(f"{report.utilisation[e]:.1%}" for e in environments)) for name, report in reports.items()],
    )
    print("\nObserved at the end: mean of the last starts, attempts let down of the last ones")
    output.table(
        (Column("POLICY"), *(Column(name.upper(), right=True) for name in environments)),
        [(name, *(_observed(report, each) for each in environments)) for name, report in reports.items()],
    )
    print("\nWait by queue, p95")
    queues = sorted({name for report in reports.values() for name in report.waits_by_queue})
    output.table(
        (Column("POLICY"), *(Column(name.upper(), right=True) for name in queues)),
        [(name, *(_p95(report.waits_by_queue.get(queue)) for queue in queues)) for name, report in reports.items()],
    )
    _print_left(found)


def _row(name: str, report: "Report") -> tuple[str, ...]:
    from landbridge_ranking.whatif.plot import told

    waits = report.waits
    return (
        name,
        f"{waits.count:,}",
        told(waits.mean),
        *(told(each) for each in waits.quantiles),
        told(waits.most),
        f"{report.devices:.1%}" if report.devices_most else "-",
        f"{report.devices_most:.1%}" if report.devices_most else "-",
        " + ".join(_money(amount, currency) for currency, amount in report.cost.items()) + _unpriced(report),
        "unknown" if report.grams_per_kwh is None else f"{report.grams_per_kwh:.0f}",
        f"{report.fairness:.3f}",
        str(report.evictions),
        str(report.let_down),
    )


def _money(amount: float, currency: str) -> str:
    return f"{amount:,.{0 if amount >= 100 else 2}f} {currency}"


def _unpriced(report: "Report") -> str:
    return f" + {report.unpriced} of unknown price" if report.unpriced else ""


def _observed(report: "Report", environment: str) -> str:
    from landbridge_ranking.whatif.plot import told

    seen = report.observed.get(environment)
    return f"{told(seen.start_delay_s)}, {seen.failures} of {seen.attempts}" if seen is not None else "-"


def _p95(waits: "Waits | None") -> str:
    from landbridge_ranking.whatif.plot import told

    return told(waits.quantiles[1]) if waits is not None else "-"


def _print_left(found: "Compared") -> None:
    for name, report in found.reports.items():
        if report.unplaced:
            told = ", ".join(f"{count} {reason or 'not tried'}" for reason, count in report.unplaced.items())
            print(f"\n{name}: never placed: {told}")
            for operation, reasons in list(found.refusals[name].items())[:_REASONS_SHOWN]:
                print(f"  {operation}")
                for reason in reasons:
                    print(f"    {reason}")
        for told in report.exceeded[:_EXCEEDED_SHOWN]:
            print(f"\n{name}: a limit was exceeded, which is a defect: {told}")


# -- for programs ------------------------------------------------------------------------------------------------------


def _plain(found: "Compared") -> dict[str, Any]:
    return {
        "scenario": found.name,
        "operations": found.operations,
        "seconds": round(found.seconds, 3),
        "policies": [_report(name, report, found) for name, report in found.reports.items()],
    }


def _report(name: str, report: "Report", found: "Compared") -> dict[str, Any]:
    return {
        "name": name,
        "placed": report.waits.count,
        "ended": report.ended,
        "waitSeconds": _waits(report.waits),
        "waitSecondsByQueue": {queue: _waits(waits) for queue, waits in report.waits_by_queue.items()},
        "unplaced": report.unplaced,
        "refusals": found.refusals[name],
        "utilisation": report.utilisation,
        "devicesInUse": {"mean": report.devices, "most": report.devices_most},
        "cost": report.cost,
        "unpriced": report.unpriced,
        "gramsPerKWh": report.grams_per_kwh,
        "fairness": report.fairness,
        "displaced": report.evictions,
        "letDown": report.let_down,
        "observed": {environment: _seen(each) for environment, each in report.observed.items()},
        "makespanSeconds": report.makespan_s,
        "limitsExceeded": list(report.exceeded),
        "assessments": report.assessments,
        "passes": report.passes,
    }


def _seen(observed: "Observed") -> dict[str, Any]:
    return {
        "starts": observed.starts,
        "startDelaySeconds": observed.start_delay_s,
        "attempts": observed.attempts,
        "letDown": observed.failures,
        "runSeconds": {key: ran.median_s for key, ran in observed.runs.items()},
    }


def _waits(waits: "Waits") -> dict[str, float]:
    p50, p95, p99 = waits.quantiles
    return {"count": waits.count, "mean": waits.mean, "p50": p50, "p95": p95, "p99": p99, "most": waits.most}
