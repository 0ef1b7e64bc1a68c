"""The environment has processors of an architecture that the operation can run on."""

from datetime import datetime

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.hardware import fits, image_variant_for
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Architecture(Rule):
    """Codes: `architecture-not-offered`, `architecture-not-stated`, `no-image-variant`."""

    name = "architecture"
    fields = ("architectures", "image_variants", "accelerator", "command")

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        if not requirements.architectures and not requirements.image_variants:
            return OK
        offered = candidate.contract.runtime.architectures
        return self._processors(requirements, offered) + self._variants(requirements, candidate, offered)

    def _processors(self, requirements: Requirements, offered: tuple[str, ...]) -> Violations:
        wanted = requirements.architectures
        if not wanted or any(architecture in offered for architecture in wanted):
            return OK
        told = f"processors of {listed(wanted)}"
        if not offered:
            return (
                Violation(self.name, "architecture-not-stated", Kind.MISCONFIGURED, told, "no architecture stated"),
            )
        found = f"processors of {listed(offered)}"
        return (Violation(self.name, "architecture-not-offered", Kind.NEVER, told, found),)

    def _variants(self, requirements: Requirements, candidate: Candidate, offered: tuple[str, ...]) -> Violations:
        """Without a digest of its own an image can only start through one of its variants.

        Which of several classes there is one for is for `serving` to say; here it is enough that one of them has one.
        """
        variants, need = requirements.image_variants, requirements.accelerator
        if not variants or image_variant_for("", requirements, candidate):
            return OK
        fitting = (offer.name for offer, mismatches in fits(need, candidate) if not mismatches) if need else ()
        if any(image_variant_for(name, requirements, candidate) for name in fitting):
            return OK
        brought = listed("/".join(filter(None, variant)) for variant in variants)
        found = f"architectures {listed(offered, 'not stated')}"
        return (Violation(self.name, "no-image-variant", Kind.NEVER, f"one of the variants {brought}", found),)
