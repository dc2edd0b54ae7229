"""What rang, and what may begin: each activity is one commit of the store."""

from concurrent.futures import Executor
from dataclasses import asdict
from uuid import UUID

from temporalio import activity

from activities.border import ask
from law.identity import DecisionId, ScheduleName
from law.merging import Merge
from law.origin import read_class, read_origin
from law.partition import read_activation
from store import admission, cutover, occurrences, offers, standing
from store.connection import Pool
from workflows import asks


class ScheduleActivities:
    """Answers for one Schedule, and for whoever else is due."""

    def __init__(self, pool: Pool, threads: Executor, merge: Merge) -> None:
        self._pool = pool
        self._threads = threads
        self._merge = merge

    @activity.defn
    async def materialize(self, question: asks.MaterializeAsk) -> asks.Materialized:
        """Make every due firing one durable Occurrence."""
        found = await ask(
            self._threads,
            occurrences.materialize,
            self._pool,
            ScheduleName(question.schedule),
            DecisionId(UUID(question.decision_id)),
        )
        return asks.Materialized(**asdict(found))

    @activity.defn
    async def decide(self, question: asks.DecideAsk) -> asks.Decided:
        """The authoritative conditional admission commit; how the Schedule stands is read after it, and for show."""
        decided = await ask(
            self._threads,
            admission.decide,
            self._pool,
            ScheduleName(question.schedule),
            DecisionId(UUID(question.decision_id)),
            self._merge,
        )
        stands = await ask(self._threads, standing.standing, self._pool, decided.schedule, decided.wake_at)
        return as_shown(decided, stands)

    @activity.defn
    async def offer(self, question: asks.OfferAsk) -> asks.Offered:
        """Make an external firing one durable Occurrence."""
        offered = await ask(self._threads, offer_by_name, self._pool, question)
        return asks.Offered(**{**asdict(offered), "trigger_occurrence_id": str(offered.trigger_occurrence_id)})

    @activity.defn
    async def activate(self, question: asks.ActivateAsk) -> asks.Activated:
        """Pin a cutover plan and make a revision active."""
        activated = await ask(self._threads, activate_as_asked, self._pool, question)
        return asks.Activated(**asdict(activated))


def as_shown(decided: admission.Decided, stands: standing.Standing) -> asks.Decided:
    """The answer as the workflow knows it: the hint to follow, and what its page says."""
    return asks.Decided(
        schedule=decided.schedule,
        outcomes=[asks.OutcomeLine(**asdict(line)) for line in stands.lines],
        wake_at=decided.wake_at,
        undelivered=decided.undelivered,
        wake_civil=stands.wake_civil,
        pending=stands.pending,
        running=stands.running,
        held=stands.held,
        paused=stands.paused,
    )


def activate_as_asked(pool: Pool, question: asks.ActivateAsk) -> cutover.Activated:
    """Activate what a message asks for. Raises BadInput for one that cannot be read, and as `cutover.activate` does."""
    revision, plan = read_activation(question.message)
    return cutover.activate(
        pool, ScheduleName(question.schedule), revision, plan, DecisionId(UUID(question.decision_id))
    )


def offer_by_name(pool: Pool, question: asks.OfferAsk) -> offers.Offered:
    """Offer an event that is nothing but its name. Raises BadInput for a class or an origin that there is not."""
    asked = offers.Offer(
        schedule=ScheduleName(question.schedule),
        source=question.source,
        event_id=question.event_id,
        requested_class=read_class(question.requested_class),
        origin=read_origin(question.origin),
        principal=question.principal,
    )
    return offers.offer(pool, asked, DecisionId(UUID(question.decision_id)))
