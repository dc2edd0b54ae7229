"""What waits and may be judged: every eligible Occurrence of the Schedules that are held, with all that the law asks about it.

Only reads, under the locks and at the sample of whoever decides.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import sql

from law.authority import Credentials
from law.bounds import Bounds
from law.catch_up import CatchUp, CaughtUp
from law.identity import ScheduleName, TriggerOccurrenceId
from law.origin import Origin
from law.overlap import OverlapPolicy, OverlapTerms
from law.selection import Candidate, ServiceClass
from store.locks import HeldOwner, HeldPattern, HeldSchedule
from store.turn import Turn

CANDIDATES_MAX = 2_000
"""A round judges at most this many; the rest are found by the next, at once."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """A pending Occurrence whose eligibility instant has come, with the terms its revision pinned."""

    trigger_occurrence_id: TriggerOccurrenceId
    schedule_id: int
    source_key: str
    service_class: ServiceClass
    priority: int
    eligible_at: datetime
    not_before: datetime | None
    latest_start_at: datetime | None
    finish_by: datetime | None
    finish_proof: str | None
    owner: str
    origin: Origin
    pattern: str
    pattern_revision: str
    pattern_digest: str
    waiting_reason: str | None
    overlap_policy: OverlapPolicy
    parallel_max: int
    aging_seconds: int | None
    capability: str | None
    runs_per_day_max: int | None
    catch_up: dict[str, Any] | None
    """The pinned policy of a firing that was found late, where it is bounded."""


def read_eligible(held: Turn, schedules: list[HeldSchedule]) -> dict[TriggerOccurrenceId, Eligible]:
    """What waits in the held Schedules and may be judged now, oldest eligibility first."""
    ids = [one.schedule_id for one in schedules]
    arguments = {"schedules": ids, "at": held.at, "candidates_max": CANDIDATES_MAX}
    return {one.trigger_occurrence_id: one for one in held.records(Eligible, ELIGIBLE, arguments)}


def live_runs(held: Turn, schedules: list[HeldSchedule]) -> dict[ScheduleName, int]:
    """The nonterminal Invocations of each held Schedule, across its revisions (OVL-1)."""
    names = {one.schedule_id: one.schedule for one in schedules}
    return {names[schedule_id]: live for schedule_id, live in held.rows(LIVE_RUNS, {"schedules": list(names)})}


def candidates(
    held: Turn,
    eligible: dict[TriggerOccurrenceId, Eligible],
    schedules: list[HeldSchedule],
    owners: list[HeldOwner],
    patterns: list[HeldPattern],
) -> list[Candidate]:
    """Every eligible Occurrence as the law wants to see it, with the authority that was locked for it."""
    held_by_id = {one.schedule_id: one for one in schedules}
    standing = {owner.name: owner for owner in owners}
    scores = {(score.pattern, score.pattern_revision): score for score in patterns}
    capped = list({one.schedule_id for one in eligible.values() if one.runs_per_day_max is not None})
    spent = dict(held.rows(RUNS_IN_LAST_DAY, {"schedules": capped, "at": held.at})) if capped else {}
    caught_up = catch_ups(held, eligible)
    return [
        candidate(
            one,
            held_by_id[one.schedule_id],
            standing.get(one.owner),
            scores.get((one.pattern, one.pattern_revision)),
            spent.get(one.schedule_id, 0),
            caught_up.get(one.trigger_occurrence_id),
        )
        for one in eligible.values()
    ]


def catch_ups(held: Turn, eligible: dict[TriggerOccurrenceId, Eligible]) -> dict[TriggerOccurrenceId, CaughtUp]:
    """How far the bounded catch-up behind each missed firing has come."""
    found: dict[TriggerOccurrenceId, CaughtUp] = {}
    counts: dict[tuple[int, timedelta], tuple[int, int]] = {}
    for one in eligible.values():
        if one.catch_up is None:
            continue
        terms = CatchUp.model_validate(one.catch_up)
        of = one.schedule_id, terms.horizon
        if of not in counts:
            since = {"schedule_id": one.schedule_id, "since": held.at - terms.horizon}
            [counts[of]] = held.rows(CAUGHT_UP, since)
        found[one.trigger_occurrence_id] = CaughtUp(terms, *counts[of])
    return found


def candidate(
    one: Eligible,
    own: HeldSchedule,
    owner: HeldOwner | None,
    score: HeldPattern | None,
    runs_in_last_day: int,
    caught_up: CaughtUp | None,
) -> Candidate:
    """One Occurrence and what stands behind it at this sample."""
    credentials = Credentials(
        owner=one.owner,
        owner_standing=owner.standing if owner else None,
        pattern=one.pattern,
        pattern_standing=score.standing if score else None,
        pattern_digest=score.digest if score else None,
        pinned_digest=one.pattern_digest,
        runs_per_day_max=one.runs_per_day_max,
        runs_in_last_day=runs_in_last_day,
    )
    return Candidate(
        trigger_occurrence_id=one.trigger_occurrence_id,
        schedule=own.schedule,
        service_class=one.service_class,
        bounds=Bounds(one.eligible_at, one.not_before, one.latest_start_at, one.finish_by),
        overlap=OverlapTerms(one.overlap_policy, one.parallel_max),
        credentials=credentials,
        priority=one.priority,
        aging_seconds=one.aging_seconds,
        capability=one.capability,
        caught_up=caught_up,
        paused=own.paused_at is not None,
    )


ELIGIBLE = sql.SQL(
    """
    SELECT o.trigger_occurrence_id, o.schedule_id, o.source_key, o.service_class, o.priority,
           o.eligible_at, o.not_before, o.latest_start_at, o.finish_by,
           o.finish_proof, o.owner, o.origin, o.pattern, o.pattern_revision, o.pattern_digest, o.waiting_reason,
           r.overlap_policy, r.parallel_max, r.aging_seconds, r.capability, r.runs_per_day_max,
           CASE WHEN o.found_late AND r.document -> 'catch_up' ->> 'mode' = 'bounded'
                THEN r.document -> 'catch_up' END AS catch_up
    FROM occurrence o
    JOIN schedule_revision r ON r.schedule_id = o.schedule_id AND r.revision = o.revision
    WHERE o.state = 'pending' AND o.schedule_id = ANY(%(schedules)s) AND o.eligible_at <= %(at)s
    ORDER BY o.eligible_at
    LIMIT %(candidates_max)s
    """
)

LIVE_RUNS = sql.SQL(
    """
    SELECT schedule_id, count(*) FROM run
    WHERE schedule_id = ANY(%(schedules)s) AND state IN ('queued', 'running', 'parked', 'cancelling', 'contained')
    GROUP BY schedule_id
    """
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
