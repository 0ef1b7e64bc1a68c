"""What follows a failed pod: retries, and exit codes that are final."""

from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

RETRIES: Final = ("spec", "lifecycle", "retries")


def take_failure_policy(sheet: Sheet, base: Path) -> None:
    """Map backoffLimit, and the rules that make exit codes final."""
    limit = sheet.at(*base, "backoffLimit")
    if isinstance(limit, int) and not isinstance(limit, bool):
        sheet.put((*base, "backoffLimit"), (*RETRIES, "limit"), limit, "further attempts after a failed one")
    for index, rule in enumerate(sheet.list(*base, "podFailurePolicy", "rules")):
        path: Path = (*base, "podFailurePolicy", "rules", index)
        codes = sheet.at(*path, "onExitCodes", "values")
        final = isinstance(rule, dict) and rule.get("action") == "FailJob"
        if final and sheet.text(*path, "onExitCodes", "operator") == "In" and isinstance(codes, list):
            known = sheet.drafted(*RETRIES, "exceptExitCodes")
            if known is None:
                sheet.put(path, (*RETRIES, "exceptExitCodes"), list(codes), "these exit codes are final")
            else:
                known += [code for code in codes if code not in known]
                sheet.note(path, (*RETRIES, "exceptExitCodes"), "these exit codes are final")
        elif isinstance(rule, dict) and rule.get("onPodConditions") and rule.get("action") == "Ignore":
            reason = "work that its environment lost is placed again by spec.lifecycle.recovery"
            sheet.leave(path, Left(Why.DECISION, reason, "write recovery: {mode: restart}, resume or never"))
        else:
            reason = "a rule about pods that has no like here"
            sheet.leave(path, Left(Why.NO_COUNTERPART, reason, "exceptExitCodes makes exit codes final"))
