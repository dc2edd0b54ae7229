"""What there is to give at the sample, and what slices have shown: read under the locks of whoever decides (SEL-4, YLD-1).

Occupancy is the sum of open leases and nothing else: no counter can disagree with it. Measured durations and proofs of
yielding come from the slices of the very Pattern revision, newest first; nobody keeps a summary that could grow stale.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from psycopg import sql

from law.capacity import Capability, Hold, Supply
from law.estimates import CONFIDENCE_MIN, SAMPLES_MAX, Estimate, known, measured
from law.pattern import YieldContract
from law.readiness import Spent
from law.yielding import SLICES_TO_PROVE, QuietWindow, Slice, proven
from store.connection import Pool, borrow
from store.locks import HeldCapability, HeldPattern
from store.turn import Turn


def supplies(held: Turn, capabilities: Sequence[HeldCapability]) -> tuple[Supply, ...]:
    """Every locked capability with its open leases. A lease that lasts longer than was expected ends at no known instant."""
    holds: dict[str, list[Hold]] = {one.capability: [] for one in capabilities}
    if holds:
        for name, service_class, units, ends_at in held.rows(OPEN_LEASES, {"capabilities": list(holds)}):
            expected = ends_at if ends_at is not None and ends_at > held.at else None
            holds[name].append(Hold(service_class, units, expected))
    return tuple(Supply(as_capability(one), tuple(holds[one.capability])) for one in capabilities)


def as_capability(one: HeldCapability) -> Capability:
    """The row as the law knows it."""
    return Capability(
        one.capability, one.state, one.admission, one.units, one.protected_units, one.foreground_units, one.sharing
    )


def quiet_windows(held: Turn) -> tuple[QuietWindow, ...]:
    """Every approved window that is open or to come, in the order of their opening."""
    return tuple(held.records(QuietWindow, QUIET_WINDOWS, {"at": held.at}))


def measured_estimate(
    held: Turn, pattern: str, pattern_revision: str, capability: str | None, confidence_min: float
) -> Estimate | None:
    """What settled Runs of this Pattern revision on this capability say of how long the next will take."""
    arguments = {"pattern": pattern, "pattern_revision": pattern_revision, "capability": capability or ""}
    rows = held.rows(MEASURED, {**arguments, "samples_max": SAMPLES_MAX})
    return measured([timedelta(seconds=seconds) for (seconds,) in rows], confidence_min)


def measured_durations(pool: Pool) -> dict[tuple[str, str, str | None], timedelta]:
    """How long the next Run of each Pattern revision on each capability will take, as far as its settled Runs say so with an
    even chance at least; by Pattern, revision and capability."""
    samples: dict[tuple[str, str, str | None], list[timedelta]] = {}
    with borrow(pool) as connection:
        for pattern, revision, capability, seconds in connection.execute(EVERY_MEASURED, {"samples_max": SAMPLES_MAX}):
            samples.setdefault((pattern, revision, capability), []).append(timedelta(seconds=seconds))
    found = {whose: known(measured(durations, CONFIDENCE_MIN), CONFIDENCE_MIN) for whose, durations in samples.items()}
    return {whose: estimate.duration for whose, estimate in found.items() if estimate is not None}


def contract_of(score: HeldPattern | None) -> YieldContract | None:
    """The yield contract that a Pattern revision declared when it was registered."""
    if score is None or score.yields is None:
        return None
    said = score.yields
    promises = {name: bool(said[name]) for name in ("checkpoint", "release", "contain", "resume")}
    return YieldContract(timedelta(seconds=said["max_slice_seconds"]), **promises)


def is_proven(held: Turn, score: HeldPattern, contract: YieldContract) -> bool:
    """Whether the newest slices of this very Pattern revision kept its contract."""
    arguments = {"pattern": score.pattern, "pattern_revision": score.pattern_revision, "slices": SLICES_TO_PROVE}
    newest = [
        Slice(timedelta(seconds=took), at_boundary, effects_left)
        for took, at_boundary, effects_left in held.rows(NEWEST_SLICES, arguments)
    ]
    return proven(contract, newest)


def spent_on_readiness(held: Turn, schedules: Iterable[int]) -> dict[int, Spent]:
    """What each Schedule's readiness requests of the last 24 hours have spent; one without an answer may spend it all."""
    rows = held.rows(SPENT, {"schedules": list(schedules), "at": held.at})
    return {schedule_id: Spent(count, int(seconds), cost) for schedule_id, count, seconds, cost in rows}


OPEN_LEASES = sql.SQL(
    """
    SELECT capability, service_class, units, expected_end_at FROM lease
    WHERE capability = ANY(%(capabilities)s) AND released_at IS NULL
    ORDER BY granted_at, run_id
    """
)

QUIET_WINDOWS = sql.SQL(
    """
    SELECT opens_at, closes_at, capability FROM quiet_window
    WHERE withdrawn_at IS NULL AND closes_at > %(at)s
    ORDER BY opens_at, closes_at, capability
    """
)

MEASURED = sql.SQL(
    """
    SELECT run_seconds FROM slice
    WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s
      AND coalesce(capability, '') = %(capability)s AND run_seconds IS NOT NULL
    ORDER BY ended_at DESC LIMIT %(samples_max)s
    """
)

EVERY_MEASURED = sql.SQL(
    """
    SELECT pattern, pattern_revision, capability, run_seconds FROM (
        SELECT pattern, pattern_revision, capability, run_seconds,
               row_number() OVER (PARTITION BY pattern, pattern_revision, capability ORDER BY ended_at DESC) AS newest
        FROM slice WHERE run_seconds IS NOT NULL
    ) AS measured WHERE newest <= %(samples_max)s
    """
)

NEWEST_SLICES = sql.SQL(
    """
    SELECT extract(epoch FROM ended_at - claimed_at)::float8, at_boundary, effects_left FROM slice
    WHERE pattern = %(pattern)s AND pattern_revision = %(pattern_revision)s
    ORDER BY ended_at DESC, run_id DESC, enqueue_seq DESC LIMIT %(slices)s
    """
)

SPENT = sql.SQL(
    """
    SELECT schedule_id, count(*)::int, coalesce(sum(coalesce(seconds_spent, seconds_max)), 0)::float8,
           coalesce(sum(coalesce(cost_spent, cost_max)), 0)::float8
    FROM readiness_request
    WHERE schedule_id = ANY(%(schedules)s) AND asked_at > %(at)s - interval '24 hours'
    GROUP BY schedule_id
    """
)
