"""The questions: every message between a workflow and the office, and the signature of every activity.

The asker owns the question. `activities/` answers under the same names; a test keeps the signatures equal. Nothing
here imports the store, so a workflow loads quickly in the sandbox and cannot reach the database.

A history carries ids, digests and instants, never inputs, Sigils or secrets. Every ask that ends in a commit carries
a `decision_id` made by the asker: an activity that is tried again asks the same question, and the store answers it from
the record instead of deciding twice (WIN-4). Instants are aware UTC; `wake_at` is a hint, never an authority (WIN-7).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio import activity

# --- one Schedule ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MaterializeAsk:
    """Is a firing of this Schedule (or of any other) due? `revision`, `nominal_at` and `wake_at` say what the asker
    believed when it slept; the store uses none of them, the replay comparison does."""

    schedule: str
    decision_id: str
    revision: int | None = None
    nominal_at: datetime | None = None
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Materialized:
    """What the store found, and what the Schedule looks like now."""

    schedule: str
    revision: int
    service_class: str
    created: int
    skipped: int
    next_nominal_at: datetime | None
    next_civil: str
    """The next firing as people read it, such as `2026-03-29 02:00 Europe/Bratislava`; empty for external Schedules."""
    halted: str
    """Why this Schedule stands still (its retained rules are gone or altered), or empty (CAL-4)."""


@dataclass(frozen=True, slots=True)
class DecideAsk:
    """Judge what waits, this Schedule's and everybody's under the same authority."""

    schedule: str
    decision_id: str
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """One Occurrence and what became of it, as a person may read it."""

    trigger_occurrence_id: str
    key: str
    state: str
    reason: str
    run_id: str = ""
    rang: str = ""
    """Its civil time and zone, or its event id and source."""
    rang_at: datetime | None = None
    run_state: str = ""
    run_reason: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to this Schedule. `wake_at`: the next instant at which anything can happen, or None."""

    schedule: str
    outcomes: list[OutcomeLine]
    """The last ten Occurrences, the newest first, whoever decided them."""
    wake_at: datetime | None
    undelivered: int
    """Deliveries of any Schedule that wait to be published."""
    wake_civil: str = ""
    """`wake_at` as people read it in the Schedule's zone; empty for external Schedules."""
    pending: int = 0
    running: int = 0
    held: int = 0
    """Runs that are parked or contained."""
    paused: bool = False


@dataclass(frozen=True, slots=True)
class PublishAsk:
    """Drain the outbox into the lanes."""

    schedule: str


@dataclass(frozen=True, slots=True)
class Published:
    published: int
    remaining: int


@dataclass(frozen=True, slots=True)
class OfferAsk:
    """An external firing by name alone. Its content never travels through a history: who has content to bring offers
    it through the client or the command line, which write it to the store and then wake this Schedule."""

    schedule: str
    decision_id: str
    source: str
    event_id: str
    requested_class: str = ""
    origin: str = "operator"
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    trigger_occurrence_id: str
    key: str
    revision: int
    state: str
    reason: str
    created: bool


@dataclass(frozen=True, slots=True)
class ActivateAsk:
    """Make a revision the active one under this plan: `{"first_cycle": …}`, `{"plan": {…}}`, or nothing where neither side
    has a calendar (CUT-1)."""

    schedule: str
    decision_id: str
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Activated:
    schedule: str
    revision: int
    activated_at: datetime


# --- one hop --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HopAsk:
    """The delivery hop that a HopWorkflow performs: all that its message on the lane says."""

    run_id: str
    enqueue_seq: int
    schedule: str
    pattern: str


@dataclass(frozen=True, slots=True)
class ClaimAsk:
    run_id: str
    enqueue_seq: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """Whether the fence let this hop in; if not, why (a stale or duplicate delivery does nothing, IDN-2)."""

    granted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PerformAsk:
    run_id: str
    enqueue_seq: int
    claim_id: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Performed:
    """How the Pattern ended: `done`, `yielded`, `failed` or `refused`. The report itself is in the store."""

    ending: str


@dataclass(frozen=True, slots=True)
class SettleAsk:
    run_id: str
    enqueue_seq: int
    claim_id: str
    decision_id: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Settled:
    run_id: str
    state: str
    disposition: str
    reason: str


# --- the relay ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SweepAsk:
    """Look for what a crash left behind. `round_id` differs a sweep, so that histories can be told apart."""

    round_id: str


@dataclass(frozen=True, slots=True)
class Swept:
    woken: int = 0
    """Schedules whose bell or bound passed without anybody asking."""
    republished: int = 0
    recovered: int = 0
    """Runs whose worker was lost and which were returned, contained or failed."""


# --- the signatures that `activities/` answers ----------------------------------------------------------------------


@activity.defn
async def materialize(ask: MaterializeAsk) -> Materialized:
    """Make every due firing one durable Occurrence."""
    raise NotImplementedError


@activity.defn
async def decide(ask: DecideAsk) -> Decided:
    """The authoritative conditional admission commit."""
    raise NotImplementedError


@activity.defn
async def publish(ask: PublishAsk) -> Published:
    """Hand what was admitted to its lane."""
    raise NotImplementedError


@activity.defn
async def offer(ask: OfferAsk) -> Offered:
    """Make an external firing one durable Occurrence."""
    raise NotImplementedError


@activity.defn
async def activate(ask: ActivateAsk) -> Activated:
    """Pin a cutover plan and make a revision active."""
    raise NotImplementedError


@activity.defn
async def claim(ask: ClaimAsk) -> Claimed:
    """Take a Run's hop through its fence."""
    raise NotImplementedError


@activity.defn
async def perform(ask: PerformAsk) -> Performed:
    """Carry the Pattern for one hop."""
    raise NotImplementedError


@activity.defn
async def settle(ask: SettleAsk) -> Settled:
    """The terminal Run decision, or the offer of a next hop; of a hop whose worker is gone, what it left is decided."""
    raise NotImplementedError


@activity.defn
async def sweep(ask: SweepAsk) -> Swept:
    """Relay whatever a crash left behind."""
    raise NotImplementedError
