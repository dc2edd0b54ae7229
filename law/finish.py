"""How a Run ends, and what its finish bound became (FIN-1..6, IDN-3, IDN-5).

The settle transaction samples, and asks here. A Pattern's ending is only a report: DONE proves nothing without the proof
its revision requires; an effect in doubt holds the Run, whatever the report says; a bound that has passed is recorded as
unmet and is never met later. A lost worker is judged by what it left in doubt, never by time alone.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from law.reasons import MEANINGS, Disposition, Reason, RunState

EndingName = Literal["done", "yielded", "parked", "failed", "refused"]
WaitOwner = Literal["consent", "delegate", "hardware"]

LOST_HOPS_MAX = 10
"""A Run whose hops keep losing their worker is failed as lost after this many returns."""


@dataclass(frozen=True, slots=True)
class FinishTerms:
    """What the revision asked: the bound (None: no promise about completion, FIN-6) and the proof kind it requires."""

    finish_by: datetime | None = None
    finish_proof: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What the worker brought back. `proof_problem` is what the registered validator found wrong with the proof, or ''."""

    ending: EndingName
    proof_kind: str | None = None
    proof_problem: str = ""
    refusal: str = ""
    """For `refused`: the reason code for which the office refused an effect."""
    waits_for: WaitOwner | None = None
    """For `parked`: who has not answered yet; None where everybody has, meanwhile."""


@dataclass(frozen=True, slots=True)
class RunJudgement:
    """The Run's next state, the disposition of its bound, and why. A `queued` Run has a next hop."""

    state: RunState
    disposition: Disposition
    reason: Reason
    wait_owner: WaitOwner | None = None

    @property
    def obligations(self) -> tuple[str, ...]:
        return MEANINGS[self.reason].obligations


def judge_ending(report: Report, terms: FinishTerms, earlier: Disposition, in_doubt: int, at: datetime) -> RunJudgement:
    """Judge a reported ending at the sample `at`; `in_doubt` counts begun effects without a known result."""
    bound = disposition_at(terms, earlier, at)
    if in_doubt:
        return RunJudgement(RunState.CONTAINED, bound, Reason.EFFECT_IN_DOUBT)
    if report.ending == "yielded":
        return RunJudgement(RunState.QUEUED, bound, Reason.YIELDED)
    if report.ending == "parked":
        return judge_parked(report.waits_for, bound)
    if report.ending != "done":
        reason = Reason(report.refusal) if report.refusal else Reason.PATTERN_FAILED
        return RunJudgement(RunState.FAILED, closed(bound), reason)
    wanting = proof_wanting(report, terms)
    if wanting is not None:
        return RunJudgement(RunState.FAILED, closed(bound), wanting)
    if bound is Disposition.UNMET:
        return RunJudgement(RunState.DONE, bound, Reason.FINISHED_LATE)
    return RunJudgement(RunState.DONE, Disposition.TIMELY if bound is Disposition.OPEN else bound, Reason.FINISHED)


def judge_parked(waits_for: WaitOwner | None, bound: Disposition) -> RunJudgement:
    """A Run that has to wait for somebody keeps its Invocation and releases its worker; one that was answered before it could
    be parked returns at once (WIN-8)."""
    if waits_for is None:
        return RunJudgement(RunState.QUEUED, bound, Reason.ANSWERED)
    reason = Reason.CONSENT_AWAITED if waits_for == "consent" else Reason.DELEGATE_AWAITED
    return RunJudgement(RunState.PARKED, bound, reason, waits_for)


def judge_cancelling(judged: RunJudgement) -> RunJudgement:
    """What a hop's end means for a Run that is to be cancelled: nothing follows it any more. Work that ended well has ended
    well, and what is in doubt stays contained (OVL-1, FIN-5)."""
    if judged.state in (RunState.DONE, RunState.CONTAINED):
        return judged
    return RunJudgement(RunState.CANCELLED, closed(judged.disposition), Reason.CANCELLED)


def judge_containment(
    terms: FinishTerms, earlier: Disposition, in_doubt: int, may_return: bool, cancelling: bool, at: datetime
) -> RunJudgement:
    """What follows an operator's finding: while anything is in doubt it stays contained; then it is cancelled where that was
    asked, returns where its Pattern lets it and nothing was undone, and has failed otherwise (IDN-5)."""
    bound = disposition_at(terms, earlier, at)
    if in_doubt:
        return RunJudgement(RunState.CONTAINED, bound, Reason.EFFECT_IN_DOUBT)
    if cancelling:
        return RunJudgement(RunState.CANCELLED, closed(bound), Reason.CANCELLED)
    if may_return and bound is not Disposition.UNMET:
        return RunJudgement(RunState.QUEUED, bound, Reason.CONTAINMENT_SETTLED)
    return RunJudgement(RunState.FAILED, closed(bound), Reason.CONTAINMENT_SETTLED)


def judge_lost(
    terms: FinishTerms, earlier: Disposition, in_doubt: int, may_return: bool, lost_hops: int, at: datetime
) -> RunJudgement:
    """Judge a hop whose worker is gone: contained while anything is in doubt, returned if lawful, otherwise lost (IDN-5)."""
    bound = disposition_at(terms, earlier, at)
    if in_doubt:
        return RunJudgement(RunState.CONTAINED, bound, Reason.EFFECT_IN_DOUBT)
    if may_return and bound is not Disposition.UNMET and lost_hops < LOST_HOPS_MAX:
        return RunJudgement(RunState.QUEUED, bound, Reason.RETURNED)
    return RunJudgement(RunState.FAILED, closed(bound), Reason.LOST)


def disposition_at(terms: FinishTerms, earlier: Disposition, at: datetime) -> Disposition:
    """What the bound is at this sample; an expiry that was committed excludes every later timely finish (FIN-3)."""
    if terms.finish_by is None:
        return Disposition.UNTIMED
    if earlier is Disposition.UNMET or at >= terms.finish_by:
        return Disposition.UNMET
    return Disposition.OPEN


def closed(bound: Disposition) -> Disposition:
    """A terminal Run without a timely finish leaves no bound open."""
    return Disposition.UNMET if bound is Disposition.OPEN else bound


def proof_wanting(report: Report, terms: FinishTerms) -> Reason | None:
    """Why the proof does not suffice, or None (FIN-1)."""
    if terms.finish_proof is None:
        return None
    if report.proof_kind != terms.finish_proof:
        return Reason.PROOF_MISSING
    return Reason.PROOF_INVALID if report.proof_problem else None
