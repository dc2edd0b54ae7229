"""The office once more, as plainly as it can be said: one thread, no database, no crash. What the store is compared with.

Written from the covenant and not from `law/`: it shares the words of its outcomes with the product and none of its code.
Everything is looked up by walking through lists, and laid out anew whenever it is asked for. `tests/model/reference_round.py`
has the one act that judges what waits; here is everything that happens around it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

MISFIRE_THRESHOLD, HORIZON = timedelta(seconds=60), timedelta(days=1)
MAX_SLICE = timedelta(seconds=30)
TERMINAL = ("done", "failed", "cancelled")
NONTERMINAL = ("queued", "running", "parked", "cancelling", "contained")


@dataclass(frozen=True)
class Score:
    """A Schedule as the model knows it. `every`: how many minutes lie between two bells; None for an external trigger."""

    name: str
    policy: str = "forbid"
    parallel: int = 1
    units_max: int | None = None
    service_class: str = "foreground"
    priority: int = 50
    capability: str | None = None
    units: int = 1
    estimate: timedelta | None = None
    allowed_delay: timedelta | None = None
    finish_within: timedelta | None = None
    every: timedelta | None = None
    owner: str = "magus"
    pattern: str = "bridge_turn"

    @property
    def yields(self) -> bool:
        """The one installed Pattern with a yield contract, which is also the one that merges and returns."""
        return self.pattern == "embedding_backfill"


@dataclass
class Ring:
    """One Occurrence. `wish` is the part of its input that its Pattern's merge compares."""

    score: Score
    key: str
    known_as: str
    rang_at: datetime
    eligible_at: datetime
    latest_start_at: datetime | None
    finish_by: datetime | None
    wish: str = ""
    generation: int = 0
    state: str = "pending"
    reason: str | None = None
    into: str | None = None

    @property
    def place(self) -> tuple[datetime, str]:
        return self.rang_at, self.known_as

    def ends(self, state: str, reason: str) -> None:
        self.state, self.reason = state, reason


@dataclass
class Work:
    """One Run, with the hop that it is in."""

    ring: Ring
    state: str = "queued"
    sequence: int = 0
    disposition: str = "untimed"
    waits_for: str | None = None
    claimed_at: datetime | None = None
    doubts: int = 0
    undone: bool = False
    lost_hops: int = 0
    cancelling: bool = False
    asked: str | None = None
    """The state of its question, once it has asked: asked, approved or denied."""
    has_checkpoint_here: bool = False

    @property
    def score(self) -> Score:
        return self.ring.score


@dataclass
class Iron:
    """The one capability of the model."""

    state: str = "WARM"
    admission: str = "open"
    units: int = 2
    protected: int = 0
    kept_for_foreground: int = 0
    exclusive: bool = False

    def takes(self, units: int) -> int:
        return max(units, self.units) if self.exclusive else units


@dataclass
class Lent:
    """An open lease."""

    work: Work
    units: int
    ends_at: datetime | None


@dataclass
class Reference:
    """Everything there is."""

    now: datetime
    run_named: Callable[[str], str]
    """The id of the Run of an Occurrence, by which equals are told apart."""
    met: Counter[str] = field(default_factory=Counter)
    """Situations that were met, beside outcomes."""
    scores: list[Score] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    leases: list[Lent] = field(default_factory=list)
    iron: Iron | None = None
    windows: list[tuple[datetime, datetime, str | None]] = field(default_factory=list)
    slices: list[tuple[datetime, str, int, bool]] = field(default_factory=list)
    """Every slice of the Pattern that yields: when it ended, of which Run, which hop, and whether it kept the contract."""
    cursors: dict[str, datetime] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    revoked: set[str] = field(default_factory=set)
    generations: dict[str, int] = field(default_factory=dict)

    def offer(self, score: Score, key: str, known_as: str, wish: str) -> Ring:
        """An event becomes its Occurrence once, whatever happens later."""
        for ring in self.rings:
            if ring.known_as == known_as:
                return ring
        return self.born(score, key, known_as, self.now, wish)

    def born(self, score: Score, key: str, known_as: str, rang_at: datetime, wish: str = "") -> Ring:
        """A new row with its bounds, which never move; final at birth where the owner's authority is gone."""
        latest = rang_at + score.allowed_delay if score.allowed_delay else None
        finish = rang_at + score.finish_within if score.finish_within else None
        generation = self.generations.get(score.owner, 1)
        ring = Ring(score, key, known_as, rang_at, rang_at, latest, finish, wish, generation)
        if rang_at > self.now:
            ring.reason = "not_yet_eligible"
        if score.owner in self.revoked:
            ring.ends("revoked", "owner_revoked")
        self.rings.append(ring)
        return ring

    def due(self, score: Score) -> list[datetime]:
        """What rang since it was last looked, newest first."""
        assert score.every is not None
        cursor = self.cursors[score.name]
        midnight = cursor.replace(hour=0, minute=0, second=0, microsecond=0)
        bell, found = midnight, list[datetime]()
        while bell <= self.now:
            if bell >= cursor:
                found.append(bell)
            bell += score.every
        return found[::-1]

    def rang(self, score: Score, bells: list[tuple[datetime, str, str]]) -> None:
        """Every bell (instant, key, id), newest first, becomes a row; of the missed ones that could still be admitted all but
        the newest are let go."""
        considered = 0
        for bell, key, known_as in bells:
            ring = self.born(score, key, known_as, bell)
            late = self.now - bell > MISFIRE_THRESHOLD
            closed = any(end is not None and self.now >= end for end in (ring.latest_start_at, ring.finish_by))
            if not late:
                continue
            if self.now - bell > HORIZON:
                ring.ends("skipped", "beyond_horizon")
            elif not closed:
                if considered:
                    ring.ends("skipped", "not_newest")
                considered += 1
        if bells:
            self.cursors[score.name] = self.now + timedelta(microseconds=1)

    def claim(self, work: Work) -> str:
        """A hop is let in once; a Run whose owner is gone fails instead."""
        if work.state != "queued":
            return "stale_delivery"
        if work.score.owner in self.revoked:
            self.fail(work)
            return "owner_revoked"
        work.state, work.claimed_at, work.has_checkpoint_here = "running", self.now, False
        return "claimed"

    def fail(self, work: Work) -> None:
        """It was not carried any further, since nobody answers for it."""
        work.state, work.waits_for = "failed", None
        work.disposition = "untimed" if work.ring.finish_by is None else "unmet"
        self.release(work)

    def begin_effect(self, work: Work) -> str:
        """Whether an effect may begin; one that does stays in doubt in this model."""
        if work.cancelling:
            return "cancel_requested"
        if self.bound(work) == "unmet":
            work.disposition = "unmet"
            return "finish_bound_passed"
        if work.score.owner in self.revoked:
            return "owner_revoked"
        work.doubts += 1
        return "begun"

    def bound(self, work: Work) -> str:
        """What has become of its finish bound by now; an expiry stays."""
        if work.ring.finish_by is None:
            return "untimed"
        return "unmet" if work.disposition == "unmet" or self.now >= work.ring.finish_by else "open"

    def end_hop(self, work: Work, ending: str | None, may_return: bool) -> None:
        """A hop ends with a report or, without one, lost."""
        bound = self.bound(work)
        shut = "unmet" if bound == "open" else bound
        back, lost = False, 0
        if work.doubts:
            state = "contained"
        elif ending is None and may_return and bound != "unmet" and work.lost_hops < 10:
            state, back, lost = "queued", True, work.lost_hops + 1
        elif ending == "yielded":
            state, back = "queued", True
        elif ending == "parked" and work.asked == "asked":
            state = "parked"
        elif ending == "parked":
            state, back = "queued", True
        elif ending == "done":
            state, bound = "done", "timely" if bound == "open" else bound
        else:
            state, bound = "failed", shut
        was_lost = state == "failed" and ending is None and not work.cancelling
        if work.cancelling and state not in ("done", "contained"):
            state, bound, back = "cancelled", "unmet" if bound == "open" else bound, False
        hop, doubts = work.sequence, work.doubts
        self.ended(work, state, bound, back, "consent" if state == "parked" else None)
        work.lost_hops = lost if back else 0
        if work.score.yields:
            assert work.claimed_at is not None
            at_boundary = (work.state in TERMINAL or work.has_checkpoint_here) and not was_lost
            kept = timedelta(0) <= self.now - work.claimed_at <= MAX_SLICE and at_boundary and not doubts
            self.slices.append((self.now, self.run_named(work.ring.known_as), hop, kept))

    def ended(self, work: Work, state: str, bound: str, back: bool, waits_for: str | None) -> None:
        """Write where it stands; what it held is released, and what needs capacity waits for it."""
        if back and (work.score.capability or work.score.service_class == "spare_capacity"):
            state, waits_for, back = "parked", "hardware", False
        work.state, work.disposition, work.waits_for = state, bound, waits_for
        work.sequence += back
        self.release(work)

    def release(self, work: Work) -> None:
        self.leases = [one for one in self.leases if one.work is not work]

    def ask(self, work: Work) -> None:
        """Its hop asks for consent, once."""
        work.asked = work.asked or "asked"

    def answer(self, work: Work, said: str) -> None:
        """An answer brings back a Run that was parked for it."""
        work.asked = said
        if work.state != "parked" or work.waits_for != "consent":
            return
        if work.score.owner in self.revoked:
            self.fail(work)
        else:
            self.ended(work, "queued", self.bound(work), True, None)

    def cancel(self, work: Work) -> None:
        """Somebody wants it to end."""
        bound = self.bound(work)
        work.cancelling = True
        if work.state == "running":
            self.met["cancelled while it worked"] += 1
            work.state, work.disposition = "cancelling", bound
        elif work.state == "contained":
            work.disposition = bound
        else:
            work.state, work.waits_for, work.disposition = "cancelled", None, "unmet" if bound == "open" else bound
        self.release_if_over(work)

    def release_if_over(self, work: Work) -> None:
        if work.state not in ("running", "cancelling"):
            self.release(work)

    def find(self, work: Work, finding: str) -> None:
        """An operator found out about its effect in doubt; both Patterns of the model say that they may return."""
        work.doubts -= 1
        work.undone = work.undone or finding == "compensated"
        bound = self.bound(work)
        if work.doubts:
            work.disposition = bound
        elif work.cancelling:
            self.ended(work, "cancelled", "unmet" if bound == "open" else bound, False, None)
        elif not work.undone and bound != "unmet":
            if work.score.owner in self.revoked:
                self.fail(work)
            else:
                self.ended(work, "queued", bound, True, None)
        else:
            self.ended(work, "failed", "unmet" if bound == "open" else bound, False, None)

    def proven(self) -> bool:
        """Whether the newest three slices of the Pattern that yields kept its contract."""
        newest = sorted(self.slices, key=lambda one: one[:3], reverse=True)[:3]
        return len(newest) == 3 and all(kept for *_, kept in newest)
