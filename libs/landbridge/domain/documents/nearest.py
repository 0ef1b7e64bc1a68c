"""Which of the known words was probably meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

_LONGEST = 80
_ALIKE = 0.66


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word closest to `word`, or an empty string if none is close. Ties go to the first."""
    if not word or len(word) > _LONGEST:
        return ""
    plain = _plain(word)
    best, best_score = "", _ALIKE
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(plain)
    for candidate in known:
        other = _plain(candidate)
        if other == plain:
            return candidate
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() < best_score or matcher.quick_ratio() < best_score:
            continue
        score = matcher.ratio()
        if score > best_score:
            best, best_score = candidate, score
    return best


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "memory"?`, or an empty string."""
    found = nearest(word, known)
    return f'did you mean "{found}"?' if found else ""


def _plain(word: str) -> str:
    return "".join(c for c in word.lower() if c.isalnum())
