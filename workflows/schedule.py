"""One durable workflow a Schedule: it wakes, asks, relays and shows (DESIGN §9). It decides nothing.

Its loop is three questions, each a commit of its own in PostgreSQL: what rang (materialize), what may begin (decide), what
is on its way (publish). Then it sleeps to the hint it was given, or until somebody rings. Everything it knows is for show
and may be lost with its history: the next materialize finds again whatever is due.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate, VersioningBehavior
from temporalio.exceptions import ActivityError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from workflows import asks
from workflows.shown import Shown, details, state_word, until, what_is_asked
from workflows.terms import COMMIT, HAND_OVER

HISTORY_EVENTS_MAX = 500
ROUND_FLOOR = timedelta(milliseconds=50)
"""A hint that has passed already is followed at once, but never in a busy loop."""
LIFE = timedelta(days=1)

SCHEDULE = SearchAttributeKey.for_keyword("NightbellSchedule")
CLASS = SearchAttributeKey.for_keyword("NightbellClass")
STATE = SearchAttributeKey.for_keyword("NightbellState")
NEXT_AT = SearchAttributeKey.for_datetime("NightbellNextAt")


@dataclass(frozen=True, slots=True)
class OfferMessage:
    """An external firing by name alone; see `asks.OfferAsk`."""

    source: str
    event_id: str
    requested_class: str = ""
    origin: str = "operator"
    principal: str = ""


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class ScheduleWorkflow:
    """The progress of one Schedule."""

    @workflow.init
    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.began_at = workflow.now()

    @workflow.run
    async def run(self, shown: Shown) -> None:
        while True:
            await self.round()
            await self.sleep()
            if self.is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(
                    self.shown, initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE
                )

    async def round(self) -> None:
        """The three questions. What a handler rings while they are asked is asked about again."""
        self.shown.rung = False
        while self.shown.activations:
            await self.activate_next()
        await self.materialize()
        await self.decide()
        if self.shown.undelivered:
            await self.publish()
        self.shown.rounds += 1
        self.show()

    async def activate_next(self) -> None:
        """The oldest signalled activation. A refusal changes nothing, and is shown until another activation succeeds."""
        message = self.shown.activations[0]
        try:
            await self.ask_to_activate(message)
        except ActivityError as problem:
            self.shown.refused = str(problem.cause or problem)
        self.shown.activations.pop(0)

    async def ask_to_activate(self, message: dict[str, Any]) -> asks.Activated:
        """One commit; the store's no is an error that is not tried again."""
        activated = await workflow.execute_activity(
            asks.activate,
            asks.ActivateAsk(self.shown.schedule, str(workflow.uuid4()), message),
            summary=f"activate revision {message.get('revision')}",
            **COMMIT,
        )
        self.shown.refused = ""
        return activated

    async def materialize(self) -> None:
        """What rang?"""
        shown = self.shown
        found = await workflow.execute_activity(
            asks.materialize,
            asks.MaterializeAsk(
                shown.schedule, str(workflow.uuid4()), shown.revision, shown.next_nominal_at, shown.wake_at
            ),
            summary=what_is_asked(shown),
            **COMMIT,
        )
        shown.revision, shown.service_class = found.revision, found.service_class
        shown.next_nominal_at, shown.next_civil, shown.halted = found.next_nominal_at, found.next_civil, found.halted

    async def decide(self) -> None:
        """What may begin?"""
        shown = self.shown
        decided = await workflow.execute_activity(
            asks.decide,
            asks.DecideAsk(shown.schedule, str(workflow.uuid4()), shown.revision),
            summary="what may begin?",
            **COMMIT,
        )
        shown.wake_at, shown.wake_civil, shown.undelivered = decided.wake_at, decided.wake_civil, decided.undelivered
        shown.pending, shown.running, shown.held = decided.pending, decided.running, decided.held
        shown.paused, shown.outcomes = decided.paused, decided.outcomes

    async def publish(self) -> None:
        """What is on its way?"""
        published = await workflow.execute_activity(
            asks.publish,
            asks.PublishAsk(self.shown.schedule),
            summary=f"hand {self.shown.undelivered} over to the lanes",
            **HAND_OVER,
        )
        self.shown.undelivered = published.remaining

    async def sleep(self) -> None:
        """Sleep to the hint, or until somebody rings."""
        wake_at = self.shown.wake_at
        patience = LIFE if wake_at is None else min(LIFE, max(ROUND_FLOOR, wake_at - workflow.now()))
        try:
            await workflow.wait_condition(
                lambda: self.shown.rung,
                timeout=patience,
                timeout_summary=until(self.shown),
            )
        except TimeoutError:
            self.shown.rung = True

    def is_long(self) -> bool:
        """Whether this history has grown enough to begin another, or a newer version waits for it."""
        info = workflow.info()
        return (
            info.is_continue_as_new_suggested()
            or info.get_current_history_length() >= HISTORY_EVENTS_MAX
            or workflow.now() - self.began_at >= LIFE
            or info.is_target_worker_deployment_version_changed()
        )

    @workflow.signal(description="Look again now: something may have changed. Needs no argument.")
    def reconsider(self) -> None:
        self.shown.rung = True

    @workflow.signal(
        description='Make a revision active: {"revision": 2, "first_cycle": "2026-01-03"}, or "plan" in its place. '
        "Kept until a worker runs."
    )
    def activate_revision(self, message: dict[str, Any]) -> None:
        self.shown.activations.append(message)
        self.shown.rung = True

    @workflow.update(description="The same as activate_revision, answered at once: activated, or refused and why.")
    async def activate(self, message: dict[str, Any]) -> asks.Activated:
        activated = await self.ask_to_activate(message)
        self.shown.rung = True
        return activated

    @workflow.update(description="An external firing by its source and event id. Repeating it changes nothing.")
    async def offer(self, message: OfferMessage) -> asks.Offered:
        offered = await workflow.execute_activity(
            asks.offer,
            asks.OfferAsk(
                self.shown.schedule,
                str(workflow.uuid4()),
                message.source,
                message.event_id,
                message.requested_class,
                message.origin,
                message.principal,
            ),
            summary=f"{message.source}: {message.event_id}"[:200],
            **COMMIT,
        )
        self.shown.rung = True
        return offered

    @offer.validator
    def check_offer(self, message: OfferMessage) -> None:
        if not message.source or not message.event_id:
            raise ValueError("source and event_id name the firing, and both are needed")

    @workflow.query(description="What this Schedule did last and what it waits for.")
    def progress(self) -> Shown:
        return self.shown

    def show(self) -> None:
        """Tell the UI."""
        shown = self.shown
        updates: list[SearchAttributeUpdate[Any]] = [
            SCHEDULE.value_set(shown.schedule),
            CLASS.value_set(shown.service_class),
            STATE.value_set(state_word(shown)),
        ]
        updates.append(NEXT_AT.value_set(shown.wake_at) if shown.wake_at else NEXT_AT.value_unset())
        workflow.upsert_search_attributes(updates)  # pyright: ignore[reportUnknownMemberType]: the SDK's own hint
        workflow.set_current_details(details(shown, workflow.now()))
