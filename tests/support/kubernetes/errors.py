"""Refusals as an API server writes them: a Status with code, reason, message and details."""

from typing import Any

Object = dict[str, Any]


class ApiError(Exception):
    """A refusal. `details` as in Status; `retry_after_s` becomes the header."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Object | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.details = details or {}
        self.retry_after_s = retry_after_s

    def status(self) -> Object:
        details = dict(self.details)
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        found: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if details:
            found["details"] = details
        return found


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(qualified: str, name: str, why: str) -> ApiError:
    subject = f'{qualified} "{name}"' if name else qualified
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details=_details(qualified, name))


def not_found(qualified: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{qualified} "{name}" not found', details=_details(qualified, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(qualified: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{qualified} "{name}" already exists', details=_details(qualified, name))


def conflict(qualified: str, name: str, why: str = "") -> ApiError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(qualified, name))


def gone(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def invalid(kind: str, group: str, name: str, causes: list[tuple[str, str]]) -> ApiError:
    """`causes`: pairs of field and message."""
    told = ", ".join(f"{field}: {message}" for field, message in causes)
    shown = f"[{told}]" if len(causes) > 1 else told
    qualified = f"{kind}.{group}" if group else kind
    details = {
        "name": name,
        "kind": kind,
        **({"group": group} if group else {}),
        "causes": [{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in causes],
    }
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {shown}', details=details)


def _details(qualified: str, name: str) -> Object:
    plural, _, group = qualified.partition(".")
    return {"name": name, **({"group": group} if group else {}), "kind": plural}
