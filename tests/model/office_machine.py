"""The store beside its model: each step one act upon both, and then they are compared.

Schedules of every policy and class, bells and events, one capability that changes, quiet windows, pauses, revocations, hops
that end in every way, answers, findings; a clock that steps in both directions; two deciders at once; processes killed at
their commit. What the rows must never show, whatever the model thinks, is asked of them after every step too.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from psycopg import sql

from law.identity import (
    ClaimId,
    DecisionId,
    EnqueueSeq,
    RunId,
    ScheduleName,
    SourceKey,
    StationAttemptId,
    TriggerOccurrenceId,
    run_id,
    trigger_occurrence_id,
)
from law.merging import merge_with
from nightbell.postgres_server import PostgresServer, address
from nightbell.wiring import installed_patterns
from patterns.catalogue import installed
from store import cancelling, checkpoints, effects, offers, parking, pausing, runs, ward
from store.authority import register_patterns
from store.connection import open_pool
from store.errors import StoreProblem
from tests.conftest import TEMPLATE, TEST_CLOCK
from tests.model.reference import Iron, Reference, Score, Work
from tests.model.reference_round import Round
from tests.model.rows import DEADLY, EVERYTHING
from tests.model.schedules import as_document, irons, scores
from tests.office import Office

BEGINS = datetime(2026, 1, 2, 9, 0, 17, tzinfo=UTC)
MERGE = merge_with({(one.key, one.revision): one for one in installed()})

ACTS = (
    *["somebody_decides"] * 8,
    *["somebody_offers"] * 8,
    *["time_passes"] * 4,
    *["a_hop_begins", "a_hop_ends"] * 5,
    *["a_hop_is_carried"] * 4,
    *["the_bell_rings", "somebody_answers", "somebody_finds_out"] * 2,
    "somebody_cancels",
    "the_iron_changes",
    "quiet_is_approved",
    "somebody_pauses_or_resumes",
    *["adept_is_revoked_or_restored"] * 3,
)
"""One rule for all, so that every example has every act, and the usual ones more often."""

Draw = Callable[[st.SearchStrategy[Any]], Any]


class OfficeMachine(RuleBasedStateMachine):
    """The store beside its model."""

    server: ClassVar[PostgresServer]
    steps: ClassVar[int] = 0
    met: ClassVar[Counter[str]] = Counter()
    """How often each outcome was met, in all examples together."""

    def __init__(self) -> None:
        super().__init__()
        server, self.name = self.server, f"model_{uuid4().hex}"
        self.admin = psycopg.connect(address(server.home, server.port, "postgres"), autocommit=True)
        clone = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log")
        self.admin.execute(clone.format(sql.Identifier(self.name), sql.Identifier(TEMPLATE)))
        url = address(server.home, server.port, self.name)
        self.aside = psycopg.connect(url, autocommit=True)
        self.aside.execute(TEST_CLOCK)
        self.aside.execute(DEADLY)
        self.office = Office(open_pool(url, connections_max=4), url)
        self.model = Reference(BEGINS, lambda known_as: str(run_named(known_as)))
        self.claims: dict[str, ClaimId] = {}
        self.attempts: dict[str, list[StationAttemptId]] = {}
        self.events = 0

    @initialize(data=st.data(), first=irons)
    def open_the_office(self, data: st.DataObject, first: Iron) -> None:
        """Five Schedules, one capability."""
        self.set_clock()
        register_patterns(self.office.pool, installed_patterns())
        ward.set_principal(self.office.pool, "adept", "active")
        ward.set_principal(self.office.pool, "magus", "active")
        self.model.generations = dict(self.aside.execute("SELECT name, generation FROM nightbell.principal").fetchall())
        for number in range(5):
            score = data.draw(scores(f"s{number}"))
            self.office.register(as_document(score))
            self.model.scores.append(score)
            self.model.cursors[score.name] = self.model.now
        self.set_iron(first)

    def set_clock(self) -> None:
        self.aside.execute("UPDATE nightbell_test.clock SET at = %s", (self.model.now,))

    @rule(act=st.sampled_from(ACTS), data=st.data())
    def something_happens(self, act: str, data: st.DataObject) -> None:
        """One act of those below."""
        self.met[act] += 1
        getattr(self, act)(data.draw)

    def time_passes(self, draw: Draw) -> None:
        """Also backwards, as a corrected clock does."""
        seconds = draw(st.sampled_from([1, 1, 7, 7, 20, 20, 61, 61, 120, 300, 600, 1800, 7200, -1, -45, -400]))
        self.model.now += timedelta(seconds=seconds, microseconds=13)
        self.set_clock()

    def somebody_offers(self, draw: Draw) -> None:
        """An event, new or brought a second time; now and then its first bringer is killed at the commit."""
        of = draw(st.integers(0, 4))
        wish = draw(st.sampled_from(["a", "a", "b"]))
        again = draw(st.integers(0, 6)) == 1
        dies = draw(st.integers(0, 19)) == 1
        score = self.model.scores[of]
        if score.every is not None:
            self.the_bell_rings(draw)
            return
        known = [ring for ring in self.model.rings if ring.score == score and ring.key.startswith("event:")]
        if again and known:
            event_id, wish = known[-1].key.removeprefix("event:bridge:"), known[-1].wish
        else:
            self.events += 1
            event_id = f"e{self.events}"
        content = {"texts": wish} if score.pattern == "embedding_backfill" else {"message": wish}
        asked = offers.Offer(schedule_of(score), "bridge", event_id, content)
        if dies and not (again and known):
            self.killed("occurrence", lambda: offers.offer(self.office.pool, asked, DecisionId(uuid4())))
        offers.offer(self.office.pool, asked, DecisionId(uuid4()))
        key = f"event:bridge:{event_id}"
        self.model.offer(score, key, str(trigger_occurrence_id(asked.schedule, SourceKey(key))), wish)

    def the_bell_rings(self, draw: Draw) -> None:
        """Materialize: whatever is due, of every Schedule that is not paused."""
        of = draw(st.integers(0, 4))
        self.office.materialize(schedule_of(self.model.scores[of]))
        for score in self.model.scores:
            if score.every is not None and score.name not in self.model.paused:
                self.model.rang(score, [(bell, *identity_of(score, bell)) for bell in self.model.due(score)])

    def somebody_decides(self, draw: Draw) -> None:
        """One caller, two at once, or one that is killed at its commit and asks again."""
        waiting = [score for score in self.model.scores if self.waits(score)] or self.model.scores
        first, second = waiting[draw(st.integers(0, 4)) % len(waiting)], self.model.scores[draw(st.integers(0, 4))]
        how = draw(st.sampled_from(["plainly"] * 8 + ["two", "dies", "dies"]))
        callers = [first, second] if how == "two" else [first]
        if how == "dies" and self.has_news(callers[0]):
            self.killed("decision", lambda: self.office.decide(schedule_of(callers[0]), merge=MERGE))
        with ThreadPoolExecutor(len(callers)) as threads:
            asked = [threads.submit(self.office.decide, schedule_of(score), None, MERGE) for score in callers]
            for answer in asked:
                answer.result()
        for score in callers:
            Round(self.model, score).decide()

    def waits(self, score: Score) -> bool:
        """Whether anything of it is undecided."""
        return any(ring.score == score and ring.state == "pending" for ring in self.model.rings)

    def has_news(self, score: Score) -> bool:
        """Whether deciding is sure to write something."""
        new = [ring for ring in self.model.rings if ring.score == score and ring.state == "pending"]
        return any(ring.reason is None and ring.eligible_at <= self.model.now for ring in new)

    def a_hop_begins(self, draw: Draw) -> None:
        """Claimed; perhaps it saves a checkpoint, asks for consent, and begins an effect of which nothing more is heard."""
        pick = draw(st.integers(0, 9))
        doubt = draw(st.sampled_from([0, 0, 0, 1]))
        saves = draw(st.booleans())
        asks = draw(st.sampled_from([False, False, False, True]))
        work = self.one_of(pick, "queued")
        if work is None:
            return
        claim_id, run = ClaimId(uuid4()), run_of(work)
        claimed = runs.claim(self.office.pool, run, EnqueueSeq(work.sequence), claim_id, "model")
        assert claimed.reason == self.model.claim(work)
        if not claimed.granted:
            return
        self.claims[work.ring.known_as] = claim_id
        work.has_checkpoint_here = saves
        if saves:
            assert checkpoints.save(self.office.pool, run, claim_id, {"at": work.sequence})
        if asks:
            assert parking.ask(self.office.pool, run, claim_id, "consent", "go", {}, None, DecisionId(uuid4()))
            self.model.ask(work)
        for number in range(doubt):
            attempt = StationAttemptId(uuid4())
            begun = effects.admit(self.office.pool, run, claim_id, attempt, "write", f"{work.sequence}/{number}")
            expected = self.model.begin_effect(work)
            assert isinstance(begun, effects.Begin) == (expected == "begun"), (begun, expected)
            if expected == "begun":
                self.attempts.setdefault(work.ring.known_as, []).append(attempt)

    def a_hop_ends(self, draw: Draw) -> None:
        """Reported or lost, and settled; now and then whoever settles is killed at the commit and it is settled again."""
        pick = draw(st.integers(0, 9))
        ending = draw(st.sampled_from(["done", "done", "done", "yielded", "failed", "parked", None]))
        may_return = draw(st.booleans())
        dies = draw(st.integers(0, 9))
        work = self.one_of(pick, "running", "cancelling")
        if work is None:
            return
        if ending == "parked" and work.asked is None:
            ending = "done"
        claim_id, sequence = self.claims[work.ring.known_as], work.sequence
        if ending is not None:
            assert runs.report(self.office.pool, claim_id, ending, None, None, "")
        if dies == 0:
            self.killed("slice", lambda: self.settle(work, claim_id, sequence, may_return))
        self.settle(work, claim_id, sequence, may_return)
        self.model.end_hop(work, ending, may_return)

    def a_hop_is_carried(self, draw: Draw) -> None:
        """Begun and ended at once, as most are."""
        self.a_hop_begins(draw)
        self.a_hop_ends(draw)

    def settle(self, work: Work, claim_id: ClaimId, sequence: int, may_return: bool) -> None:
        self.office.settle(run_of(work), claim_id, sequence, may_return=may_return)

    def somebody_answers(self, draw: Draw) -> None:
        """Yes or no to what a Run asked."""
        pick = draw(st.integers(0, 9))
        approves = draw(st.booleans())
        asking = [work for work in self.model.works if work.asked == "asked"]
        if not asking:
            return
        work, said = asking[pick % len(asking)], "approved" if approves else "denied"
        parking.answer(self.office.pool, run_of(work), "consent", "go", said, "magus", "", None, DecisionId(uuid4()))
        self.model.answer(work, said)

    def somebody_finds_out(self, draw: Draw) -> None:
        """What became of an effect in doubt."""
        pick = draw(st.integers(0, 9))
        finding = draw(st.sampled_from(["happened", "did_not_happen", "compensated"]))
        work = self.one_of(pick, "contained")
        if work is None:
            return
        attempt = self.attempts[work.ring.known_as].pop()
        cancelling.find(self.office.pool, run_of(work), attempt, finding, "magus", "", None, DecisionId(uuid4()))
        self.model.find(work, finding)

    def somebody_cancels(self, draw: Draw) -> None:
        """A Run that is not settled; not often."""
        pick = draw(st.integers(0, 9))
        live = [work for work in self.model.works if work.state in ("queued", "running", "parked", "contained")]
        if live and not (work := live[pick % len(live)]).cancelling:
            cancelling.cancel(self.office.pool, run_of(work), "magus", "", DecisionId(uuid4()))
            self.model.cancel(work)

    def the_iron_changes(self, draw: Draw) -> None:
        """More or fewer units, other floors, warm or not."""
        now = draw(irons)
        self.set_iron(now)

    def set_iron(self, now: Iron) -> None:
        self.office.capability(
            "iron",
            now.units,
            state=now.state,
            admission=now.admission,
            protected_units=now.protected,
            foreground_units=now.kept_for_foreground,
            sharing="exclusive" if now.exclusive else "shared",
        )
        self.model.iron = now

    def quiet_is_approved(self, draw: Draw) -> None:
        """A quiet window, now or soon."""
        ahead = draw(st.sampled_from([0, 5]))
        lasts = draw(st.sampled_from([4, 30]))
        whose = draw(st.sampled_from([None, "iron"]))
        opens_at = self.model.now + timedelta(minutes=ahead)
        window = opens_at, opens_at + timedelta(minutes=lasts), whose
        self.office.quiet_window(*window)
        self.model.windows.append(window)

    def somebody_pauses_or_resumes(self, draw: Draw) -> None:
        """A Schedule stands still, or rings again."""
        of = draw(st.integers(0, 9))
        if of >= len(self.model.scores) and not self.model.paused:
            return
        name = min(self.model.paused) if self.model.paused else self.model.scores[of].name
        act = pausing.resume if name in self.model.paused else pausing.pause
        act(self.office.pool, ScheduleName(f"home/{name}"), "", DecisionId(uuid4()))
        self.model.paused ^= {name}

    def adept_is_revoked_or_restored(self, draw: Draw) -> None:
        """An owner's authority goes, and comes back at once or later; each time it is another generation."""
        how = draw(st.sampled_from(["stays", "goes", "goes and comes", "goes and comes"]))
        if "adept" in self.model.revoked:
            self.adept_is("active")
        elif how != "stays":
            self.adept_is("suspended")
            if how == "goes and comes":
                self.adept_is("active")

    def adept_is(self, state: Literal["active", "suspended"]) -> None:
        ward.set_principal(self.office.pool, "adept", state)
        self.model.revoked ^= {"adept"}
        self.model.generations["adept"] += 1

    def killed(self, table: str, act: Callable[[], object]) -> None:
        """Do it, and be killed between its last write and its commit; whoever comes next remembers nothing."""
        self.aside.execute("INSERT INTO nightbell_test.deadly VALUES (%s)", (table,))
        with pytest.raises(StoreProblem):
            act()
        self.aside.execute("DELETE FROM nightbell_test.deadly")
        self.office = self.office.restarted()

    def one_of(self, pick: int, *states: str) -> Work | None:
        found = [work for work in self.model.works if work.state in states]
        return found[pick % len(found)] if found else None

    @invariant()
    def rows_and_model_stand_the_same(self) -> None:
        """After every step."""
        OfficeMachine.steps += 1
        self.met.update(f"{ring.state}: {ring.reason}" for ring in self.model.rings)
        self.met.update(f"{work.state} {work.waits_for or ''}".strip() for work in self.model.works)
        [(shown,)] = self.aside.execute(EVERYTHING).fetchall()
        assert not shown["broken"], shown["broken"]
        expected = {ring.known_as: [ring.state, ring.reason, ring.into] for ring in self.model.rings}
        assert shown["occurrences"] == expected, difference(shown["occurrences"], expected, self.model)
        standing = {
            str(run_of(work)): [work.state, work.sequence, work.disposition, work.waits_for]
            for work in self.model.works
        }
        assert shown["runs"] == standing, difference(shown["runs"], standing, self.model)
        lent = {str(run_of(one.work)): one.units for one in self.model.leases}
        assert shown["leases"] == lent

    def teardown(self) -> None:
        self.met.update(self.model.met)
        self.office.pool.close()
        self.aside.close()
        self.admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(self.name)))
        self.admin.close()


def schedule_of(score: Score) -> ScheduleName:
    return ScheduleName(f"home/{score.name}")


def identity_of(score: Score, bell: datetime) -> tuple[str, str]:
    """A bell's key and id."""
    key = f"nominal:{bell:%Y-%m-%dT%H:%M:%S}[UTC]#0"
    return key, str(trigger_occurrence_id(schedule_of(score), SourceKey(key)))


def run_of(work: Work) -> RunId:
    return run_named(work.ring.known_as)


def run_named(known_as: str) -> RunId:
    """The Run of an Occurrence."""
    return run_id(TriggerOccurrenceId(UUID(known_as)), 0)


def difference(shown: dict[str, Any], expected: dict[str, Any], model: Reference) -> str:
    """What the rows say and what the model says, where they differ."""
    keys = [key for key in {*shown, *expected} if shown.get(key) != expected.get(key)]
    lines = [f"{key}: rows {shown.get(key)}, model {expected.get(key)}" for key in keys]
    about = [ring for ring in model.rings if ring.known_as in keys]
    return "\n".join([*lines, *map(str, about), f"at {model.now}", str(model.iron), str(model.leases)])
