"""What stands behind everything that waits: authority, need, estimate, budgets, all that the law asks about it.

Only reads, under the locks and at the sample of whoever decides; each question is asked of the rows once, and only if it
arises.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from psycopg import sql

from law.authority import Credentials, Sigil, scopes_of
from law.bounds import Bounds
from law.budget import Ceiling, asks_of
from law.candidates import Candidate, Need
from law.catch_up import CatchUp, CaughtUp
from law.estimates import CONFIDENCE_MIN, Estimate, known
from law.identity import TriggerOccurrenceId
from law.merging import Mergeable
from law.pattern import YieldContract
from law.readiness import Spent
from law.schedule import CapacityTable
from store.budgets import ceilings
from store.eligible import Eligible
from store.jsonb import dumps
from store.locks import (
    HeldBudget,
    HeldOwner,
    HeldPattern,
    HeldSchedule,
    HeldSigil,
    as_sigil,
)
from store.supplies import contract_of, is_proven, measured_estimate, spent_on_readiness
from store.turn import Turn


@dataclass
class Evidence:
    """What stands behind the candidates of one round. Each question is asked of the rows once, and only if it arises."""

    held: Turn
    eligible: dict[TriggerOccurrenceId, Eligible]
    schedules: Sequence[HeldSchedule]
    owners: Sequence[HeldOwner]
    sigils: Sequence[HeldSigil]
    patterns: Sequence[HeldPattern]
    budgets: Sequence[HeldBudget] = ()

    def candidates(self) -> list[Candidate]:
        """Every eligible Occurrence as the law wants to see it, with the authority that was locked for it."""
        by_id = {one.schedule_id: one for one in self.schedules}
        return [self.candidate(one, by_id[one.schedule_id]) for one in self.eligible.values()]

    def candidate(self, one: Eligible, own: HeldSchedule) -> Candidate:
        """One Occurrence and what stands behind it at this sample."""
        return Candidate(
            trigger_occurrence_id=one.trigger_occurrence_id,
            schedule=own.schedule,
            service_class=one.service_class,
            bounds=Bounds(one.eligible_at, one.not_before, one.latest_start_at, one.finish_by),
            overlap=one.terms,
            credentials=self.credentials(one),
            priority=one.priority,
            aging_seconds=one.aging_seconds,
            need=self.need(one),
            caught_up=self.catch_ups.get(one.trigger_occurrence_id),
            paused=own.paused_at is not None,
            rang_at=one.rang_at,
            mergeable=mergeable(one),
            ceilings=self.ceilings_of(one, own),
            asks=asks_of(one.reserve or {}) if self.budgets else {},
            resumes=one.resumes,
        )

    def credentials(self, one: Eligible) -> Credentials:
        """Owner, Pattern revision and ceiling at this sample; a ceiling was spent at admission and is not asked again."""
        owner = self.standing.get(one.owner)
        score = self.scores.get((one.pattern, one.pattern_revision))
        return Credentials(
            owner=one.owner,
            owner_standing=owner.standing if owner else None,
            pattern=one.pattern,
            pattern_standing=score.standing if score else None,
            pattern_digest=score.digest if score else None,
            pinned_digest=one.pattern_digest,
            runs_per_day_max=one.runs_per_day_max if one.resumes is None else None,
            runs_in_last_day=self.spent_runs.get(one.schedule_id, 0),
            sigil_named=one.sigil,
            sigil=self.seals.get(one.sigil or ""),
            needs=scopes_of(one.pattern, one.service_class, one.capacity["capability"] if one.capacity else None),
        )

    def ceilings_of(self, one: Eligible, own: HeldSchedule) -> tuple[Ceiling, ...]:
        """The ceilings of its owner and its Schedule; a Run between two slices has reserved what it needs."""
        if not self.budgets or one.resumes is not None:
            return ()
        return (
            *self.ceilings.get(("owner", one.owner), ()),
            *self.ceilings.get(("schedule", own.schedule), ()),
        )

    def need(self, one: Eligible) -> Need:
        """What it asks of a capability, and how long that takes as far as anybody knows."""
        pinned = one.needs
        contract = self.proven_contract(one)
        estimate = self.estimate(one, pinned, contract)
        if pinned is None:
            return Need(estimate=estimate, is_proven=contract is not None)
        return Need(
            capability=pinned.capability,
            units=pinned.units if pinned.capability is not None else 0,
            estimate=estimate,
            is_proven=contract is not None,
            transition=pinned.transition.budget if pinned.transition is not None else None,
            spent=self.spent_readiness.get(one.schedule_id, Spent()),
            has_asked=one.has_asked,
        )

    def proven_contract(self, one: Eligible) -> YieldContract | None:
        """The yield contract of spare work, where slices have proven it; None for all other work, which need not yield."""
        if one.service_class != "spare_capacity":
            return None
        score = self.scores.get((one.pattern, one.pattern_revision))
        contract = contract_of(score)
        if score is None or contract is None:
            return None
        if (one.pattern, one.pattern_revision) not in self._proven:
            self._proven[one.pattern, one.pattern_revision] = is_proven(self.held, score, contract)
        return contract if self._proven[one.pattern, one.pattern_revision] else None

    def estimate(self, one: Eligible, pinned: CapacityTable | None, contract: YieldContract | None) -> Estimate | None:
        """How long it will hold what it takes: a slice where it yields, otherwise what the revision says, or what was
        measured where it leaves that open. None below the pinned confidence (SEL-4)."""
        if contract is not None:
            return Estimate(contract.max_slice, "declared", 1.0)
        if pinned is None and one.finish_by is None:
            return None
        said = pinned.estimate if pinned is not None else None
        confidence_min = CONFIDENCE_MIN
        if pinned is not None and pinned.min_confidence is not None:
            confidence_min = pinned.min_confidence
        if said is not None and said.claim is not None:
            return known(said.claim, confidence_min)
        whose = one.pattern, one.pattern_revision, pinned.capability if pinned is not None else None
        if (*whose, confidence_min) not in self._measured:
            self._measured[*whose, confidence_min] = measured_estimate(self.held, *whose, confidence_min)
        return known(self._measured[*whose, confidence_min], confidence_min)

    def __post_init__(self) -> None:
        self._proven: dict[tuple[str, str], bool] = {}
        self._measured: dict[tuple[str, str, str | None, float], Estimate | None] = {}

    @cached_property
    def standing(self) -> dict[str, HeldOwner]:
        return {owner.name: owner for owner in self.owners}

    @cached_property
    def seals(self) -> dict[str, Sigil]:
        return {one.name: as_sigil(one) for one in self.sigils}

    @cached_property
    def ceilings(self) -> dict[tuple[str, str], tuple[Ceiling, ...]]:
        """What is spent of every ceiling that something here would spend of."""
        return ceilings(self.held, list(self.budgets))

    @cached_property
    def scores(self) -> dict[tuple[str, str], HeldPattern]:
        return {(score.pattern, score.pattern_revision): score for score in self.patterns}

    @cached_property
    def spent_runs(self) -> dict[int, int]:
        """How many Runs each capped Schedule was admitted in the last 24 hours."""
        capped = list({one.schedule_id for one in self.eligible.values() if one.runs_per_day_max is not None})
        return dict(self.held.rows(RUNS_IN_LAST_DAY, {"schedules": capped, "at": self.held.at})) if capped else {}

    @cached_property
    def spent_readiness(self) -> dict[int, Spent]:
        """What those who may ask for readiness have spent on it."""
        may_ask = {one.schedule_id for one in self.eligible.values() if one.capacity and one.capacity.get("transition")}
        return spent_on_readiness(self.held, may_ask) if may_ask else {}

    @cached_property
    def catch_ups(self) -> dict[TriggerOccurrenceId, CaughtUp]:
        """How far the bounded catch-up behind each missed firing has come."""
        found: dict[TriggerOccurrenceId, CaughtUp] = {}
        counts: dict[tuple[int, timedelta], tuple[int, int]] = {}
        for one in self.eligible.values():
            if one.catch_up is None:
                continue
            terms = CatchUp.model_validate(one.catch_up)
            of = one.schedule_id, terms.horizon
            if of not in counts:
                since = {"schedule_id": one.schedule_id, "since": self.held.at - terms.horizon}
                [counts[of]] = self.held.rows(CAUGHT_UP, since)
            found[one.trigger_occurrence_id] = CaughtUp(terms, *counts[of])
        return found


def mergeable(one: Eligible) -> Mergeable | None:
    """What is compared and merged where the policy is `coalesce`; None elsewhere."""
    if one.document is None or one.input is None:
        return None
    tables = one.document
    policy = {name: tables[name] for name in ("class", "window", "overlap", "catch_up")}
    return Mergeable(
        pattern=one.pattern,
        pattern_revision=one.pattern_revision,
        pattern_digest=one.pattern_digest,
        owner=one.owner,
        authority_generation=one.authority_generation,
        policy=dumps([one.service_class, one.policy_generation, policy]),
        budget=dumps([tables["budget"], tables["capacity"]]),
        label=tables["work"].get("label") or "",
        input=one.input,
    )


RUNS_IN_LAST_DAY = sql.SQL(
    """
    SELECT schedule_id, count(*) FROM run
    WHERE schedule_id = ANY(%(schedules)s) AND admitted_at > %(at)s - interval '24 hours'
    GROUP BY schedule_id
    """
)

CAUGHT_UP = sql.SQL(
    """
    SELECT count(*) FILTER (WHERE n.state IN ('queued', 'running', 'parked', 'cancelling', 'contained'))::int,
           count(*) FILTER (WHERE n.admitted_at > %(since)s)::int
    FROM run n JOIN occurrence o ON o.trigger_occurrence_id = n.trigger_occurrence_id
    WHERE n.schedule_id = %(schedule_id)s AND o.found_late AND (n.admitted_at > %(since)s
        OR n.state IN ('queued', 'running', 'parked', 'cancelling', 'contained'))
    """
)
