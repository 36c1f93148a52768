"""Each model that is not included is compared with sentence-transformers once, in the background: is it the published one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from components import operator_settings
from components.errors import UserError
from dashboard import caching

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.verification.comparison import Verification


def request(backend: Backend) -> None:
    """Begin the comparison of a model, unless it is included, has been compared, or the operator wants none."""
    if not operator_settings.VERIFY.value() or backend.spec.source == "embedded":
        return

    def work(_: ReportProgress, is_stopped: IsStopped) -> Verification:
        from components.model.verification.comparison import Verification, verify

        try:
            return verify(backend, is_stopped=is_stopped)
        except UserError as problem:
            return Verification(backend.spec.title, backend.revision, why_not=str(problem.problem))

    caching.verifications().request(
        (backend.spec.key, backend.revision), f"Comparing {backend.spec.title} with sentence-transformers", work
    )


def find(backend: Backend) -> Verification | None:
    """What came of comparing a model; None as long as that is not known. Never waits."""
    job = caching.verifications().find((backend.spec.key, backend.revision))
    return None if job is None else job.result
