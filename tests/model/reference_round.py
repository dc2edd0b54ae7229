"""One round of the model office: everything that waits together gets its answer (SEL-1..6, OVL-1..6, YLD-2..5).

As plain as it can be: nothing is remembered between two questions, every layout is walked step by step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.model.reference import MAX_SLICE, NONTERMINAL, Lent, Reference, Ring, Score, Work

LAST = datetime.max.replace(tzinfo=UTC)
TEMPO = {"foreground": 1, "deadline_windowed": 2, "spare_capacity": 3}
Answer = tuple[str, str]


@dataclass(frozen=True)
class Promise:
    """A deadline that can be kept if it has its units before `last`."""

    last: datetime
    known_as: str
    units: int
    takes: timedelta | None


class Round:
    """What waits, and what became of it. `resumable`: Runs that wait for their next slice."""

    def __init__(self, office: Reference, caller: Score) -> None:
        self.office, self.now = office, office.now
        judged = [score for score in office.scores if self.is_judged(score, caller)]
        self.waiting: list[Ring | Work] = [
            ring
            for ring in office.rings
            if ring.state == "pending"
            and ring.score in judged
            and (ring.eligible_at <= self.now or ring.score.policy == "serialize" or ring.score.owner in office.revoked)
        ]
        self.waiting += [
            work
            for work in office.works
            if work.waits_for == "hardware"
            and (work.score == caller or (caller.capability is not None and work.score.capability == caller.capability))
        ]
        self.proven = office.proven()
        office.met["proven"] += self.proven
        self.done = set[int]()
        self.promised: list[Promise] = []

    def is_judged(self, score: Score, caller: Score) -> bool:
        """The caller's Schedule, all that wait for its capability, and whatever was never judged and needs none that others
        hold."""
        if score == caller or (score.capability is not None and score.capability == caller.capability):
            return True
        is_free = score.capability is None or self.office.iron is None
        return is_free and any(
            ring.state == "pending" and ring.eligible_at <= self.now and ring.reason in (None, "not_yet_eligible")
            for ring in self.office.rings
            if ring.score == score
        )

    def decide(self) -> None:
        """Answer everything, in the one order."""
        self.lines = self.waiting_lines()
        going = [one for one in self.waiting if not self.take_out(one)]
        self.going = going
        self.lay_out(going)
        by_id = {known_as(one): one for one in going if isinstance(one, Ring)}
        for promise in list(self.promised):
            one = by_id[promise.known_as]
            held = self.held_by("deadline_windowed") + self.iron_takes(one)
            if self.office.iron and held <= self.office.iron.protected and id(one) not in self.done:
                self.office.met["protected"] += 1
                self.consider(one)
        for one in sorted(going, key=self.order):
            if id(one) not in self.done:
                self.consider(one)

    def take_out(self, one: Ring | Work) -> bool:
        """Answer what may not be admitted whatever there is; whether it was."""
        if one.score.owner in self.office.revoked:
            if isinstance(one, Work):
                self.office.fail(one)
            else:
                one.ends("revoked", "owner_revoked")
            return True
        if isinstance(one, Work):
            return False
        takes = self.takes(one)
        if one.latest_start_at is not None and self.now >= one.latest_start_at:
            one.ends("missed", "latest_start_passed")
        elif one.finish_by is not None and self.now >= one.finish_by:
            one.ends("missed", "finish_bound_passed")
        elif self.now < one.eligible_at:
            one.ends("pending", "not_yet_eligible")
        elif one.finish_by is not None and takes is not None and self.now + takes >= one.finish_by:
            one.ends("refused", "infeasible")
        else:
            return False
        return True

    def waiting_lines(self) -> dict[str, list[Ring]]:
        """Serialized Occurrences in the order in which they rang."""
        lines: dict[str, list[Ring]] = {}
        for one in self.waiting:
            if isinstance(one, Ring) and one.score.policy == "serialize":
                lines.setdefault(one.score.name, []).append(one)
        return {name: sorted(line, key=lambda ring: ring.place) for name, line in lines.items()}

    def takes(self, one: Ring | Work) -> timedelta | None:
        """How long it holds what it takes, where anybody knows."""
        if one.score.service_class == "spare_capacity" and self.proven and one.score.yields:
            return MAX_SLICE
        return one.score.estimate

    def last_start(self, ring: Ring) -> datetime | None:
        """The instant before which it has to begin; None where nobody can say, or where it has none."""
        takes = self.takes(ring)
        if ring.finish_by is None:
            return ring.latest_start_at
        if takes is None:
            return None
        return min(ring.finish_by - takes, ring.latest_start_at or LAST)

    def order(self, one: Ring | Work) -> tuple[int, int, datetime, datetime, str]:
        ring = one if isinstance(one, Ring) else one.ring
        first = TEMPO[one.score.service_class], -one.score.priority
        return *first, self.last_start(ring) or ring.eligible_at, ring.eligible_at, ring.known_as

    def lay_out(self, going: Sequence[Ring | Work]) -> None:
        """The deadlines that can be kept by what is open and warm, without overlapping each other against their policy."""
        iron = self.office.iron
        if iron is None or iron.state != "WARM" or iron.admission != "open":
            return
        promises = list[tuple[Promise, Ring]]()
        for one in going:
            if isinstance(one, Ring) and one.score.service_class == "deadline_windowed" and one.score.capability:
                last = self.last_start(one)
                if last is not None and last > self.now:
                    promises.append((Promise(last, one.known_as, one.score.units, self.takes(one)), one))
        beside: dict[str, list[int]] = {}
        for promise, ring in sorted(promises, key=lambda pair: (pair[0].last, pair[0].known_as)):
            units = beside.setdefault(ring.score.name, [])
            if self.held_back(ring) is None and self.overlap(ring, units) is None:
                units.append(ring.score.units)
                self.promised.append(promise)

    def held_back(self, one: Ring | Work) -> Answer | None:
        """Its own Schedule's reasons."""
        if one.score.name in self.office.paused:
            return "pending", "paused"
        if isinstance(one, Ring) and one.score.policy == "serialize":
            first = next(ring for ring in self.lines[one.score.name] if ring.state == "pending")
            if first is not one:
                return "pending", "overlap"
        return None

    def overlap(self, ring: Ring, beside: Sequence[int] = ()) -> Answer | None:
        """What its policy says of earlier work that is not settled."""
        live = [work for work in self.office.works if work.score == ring.score and work.state in NONTERMINAL]
        count = len(live) + len(beside)
        units = sum(work.score.units if work.score.capability else 0 for work in live) + sum(beside)
        mine = ring.score.units if ring.score.capability else 0
        over = ring.score.units_max is not None and units + mine > ring.score.units_max
        if count < ring.score.parallel and not over:
            return None
        return ("suppressed", "overlap_forbidden") if ring.score.policy == "forbid" else ("pending", "overlap")

    def consider(self, one: Ring | Work) -> None:
        """Answer one that may be admitted if there is room."""
        if isinstance(one, Ring) and one.score.policy == "coalesce":
            self.together([ring for ring in self.going if isinstance(ring, Ring) and ring.score == one.score])
            return
        self.done.add(id(one))
        objection = self.objection(one)
        if objection is None:
            self.admit(one)
        elif isinstance(one, Ring):
            one.ends(*objection)

    def together(self, members: list[Ring]) -> None:
        """One goes for all whose input is like its own and whose owner's authority has not changed."""
        self.done |= {id(one) for one in members}
        head = min(members, key=lambda one: (one.finish_by or LAST, one.latest_start_at or LAST, one.place))
        objection = self.objection(head)
        if objection is not None:
            for one in members:
                one.ends(*objection)
            return
        self.admit(head)
        for one in members:
            if one is head:
                continue
            if one.generation != head.generation:
                one.ends("refused", "coalesce_authority_generation")
            elif one.wish != head.wish:
                one.ends("refused", "coalesce_input")
            else:
                one.ends("coalesced", "coalesced")
                one.into = head.known_as

    def objection(self, one: Ring | Work) -> Answer | None:
        """The first thing that speaks against it."""
        objection = self.held_back(one)
        if objection is None and isinstance(one, Ring):
            objection = self.overlap(one)
        return objection or self.capacity(one)

    def capacity(self, one: Ring | Work) -> Answer | None:
        """Whether there is room for it, by its class."""
        score, iron = one.score, self.office.iron
        if score.service_class == "spare_capacity" and not (self.proven and score.yields and score.capability):
            takes = self.takes(one)
            fitting = [
                closes
                for opens, closes, of in self.office.windows
                if opens <= self.now < closes and of in (None, score.capability)
            ]
            if not any(takes is None or self.now + takes <= closes for closes in fitting):
                return "pending", "quiet_window"
        if score.capability is None:
            return None
        if iron is None or iron.state == "UNKNOWN" or (iron.state == "WARM" and iron.admission == "closed"):
            return "pending", "capacity"
        if iron.state != "WARM":
            return "pending", "readiness"
        free = iron.units - sum(one.units for one in self.office.leases)
        if score.service_class != "deadline_windowed":
            free -= max(0, iron.protected - self.held_by("deadline_windowed"))
        if score.service_class != "foreground":
            free -= max(0, iron.kept_for_foreground - self.held_by("foreground"))
        if iron.takes(score.units) > free:
            return "pending", "capacity"
        if self.breaks(one):
            self.office.met["kept for a deadline"] += 1
            return "pending", "capacity"
        return None

    def breaks(self, one: Ring | Work) -> bool:
        """Whether a deadline that could be kept without it could not be kept beside it."""
        takes = self.takes(one)
        units = self.iron_takes(one)
        more = (self.now + takes if takes is not None else None, units, one.score.service_class)
        now_kept = self.kept(self.held(), self.promised)
        beside = self.kept([*self.held(), more], self.promised)
        broken = [promise for promise in self.promised if promise in now_kept and promise not in beside]
        own = next((promise for promise in self.promised if promise.known_as == known_as(one)), None)
        if not broken or own is None or self.promised.index(broken[0]) < self.promised.index(own):
            return bool(broken)
        others = [promise for promise in self.promised if promise is not own]
        beside = self.kept([*self.held(), more], others)
        return any(promise in now_kept and promise not in beside for promise in others)

    def held(self) -> list[tuple[datetime | None, int, str]]:
        """When each lease is expected to end, its units and its class; one that outlived that ends nobody knows when."""
        return [
            (one.ends_at if one.ends_at and one.ends_at > self.now else None, one.units, one.work.score.service_class)
            for one in self.office.leases
        ]

    def kept(self, held: list[tuple[datetime | None, int, str]], promises: Sequence[Promise]) -> list[Promise]:
        """Walk through time: each begins as soon as there is room, in this order, and none passes another."""
        iron, clock, kept = self.office.iron, self.now, list[Promise]()
        assert iron is not None
        held = list(held)
        for promise in promises:
            units = iron.takes(promise.units)
            while True:
                foreground = sum(much for _, much, whose in held if whose == "foreground")
                free = iron.units - sum(much for _, much, _ in held) - max(0, iron.kept_for_foreground - foreground)
                if free >= units:
                    if clock < promise.last:
                        kept.append(promise)
                        ends = clock + promise.takes if promise.takes is not None else None
                        held.append((ends, units, "deadline_windowed"))
                    break
                ending = [hold for hold in held if hold[0] is not None and hold[0] < promise.last]
                if not ending:
                    break
                first = min(ending, key=lambda hold: hold[0] or LAST)
                clock = max(clock, first[0] or LAST)
                held.remove(first)
        return kept

    def held_by(self, service_class: str) -> int:
        return sum(one.units for one in self.office.leases if one.work.score.service_class == service_class)

    def iron_takes(self, one: Ring | Work) -> int:
        return self.office.iron.takes(one.score.units) if self.office.iron else one.score.units

    def admit(self, one: Ring | Work) -> None:
        """It begins: a Run with its lease, or the next hop of one."""
        self.promised = [promise for promise in self.promised if promise.known_as != known_as(one)]
        if isinstance(one, Ring):
            one.ends("admitted", "admitted")
            work = Work(one, disposition="untimed" if one.finish_by is None else "open")
            self.office.works.append(work)
        else:
            work = one
            work.state, work.waits_for, work.sequence = "queued", None, work.sequence + 1
            self.office.met["resumed"] += 1
        if work.score.capability is not None:
            takes = self.takes(one)
            ends_at = self.now + takes if takes is not None else None
            self.office.leases.append(Lent(work, self.iron_takes(one), ends_at))


def known_as(one: Ring | Work) -> str:
    """The id of a waiting Occurrence; a Run that resumes made its promise before."""
    return one.known_as if isinstance(one, Ring) else ""
