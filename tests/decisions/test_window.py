"""The admission window, decided by a real PostgreSQL: at the bound, past it behind a lock, rolled back, unacknowledged."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from activities.border import patiently
from law.identity import DecisionId
from store import admission
from store.connection import open_pool
from store.errors import ServerUnreachable, StoreProblem
from store.locks import own_schedule
from store.turn import turn
from tests.office import BRIDGE, NIGHTLY, Office, document

RINGS = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
BOUND = datetime(2026, 1, 2, 4, 0, tzinfo=UTC)
A_MICROSECOND = timedelta(microseconds=1)


@pytest.mark.obligation("WIN-1", boundary="ordinary")
def test_win_1_inside_the_window_is_admitted(office: Office, evening, clock) -> None:
    """A firing decided at its opening is admitted, with one Invocation, Run and delivery."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    [outcome] = office.ring(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("admitted", "admitted")
    assert [office.count(table) for table in ("invocation", "run", "delivery")] == [1, 1, 1]


@pytest.mark.obligation("WIN-1", boundary="failure")
@pytest.mark.obligation("WIN-5", boundary="ordinary")
@pytest.mark.parametrize(
    ("late", "state"), [(-A_MICROSECOND, "admitted"), (timedelta(0), "missed"), (A_MICROSECOND, "missed")]
)
def test_win_1_equality_with_the_bound_is_late(office: Office, evening, clock, late: timedelta, state: str) -> None:
    """A microsecond before the bound is admitted; at the bound, and after it, the miss is recorded and nothing else."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    clock.set(BOUND + late)
    [outcome] = office.decide(schedule).outcomes
    assert outcome.state == state
    assert office.count("invocation") == (1 if state == "admitted" else 0)


@pytest.mark.obligation("WIN-1", boundary="failure")
def test_win_1_an_earlier_finish_bound_closes_the_window_too(office: Office, evening, clock) -> None:
    """With a finish bound before the latest start, equality with it is a miss."""
    window = {"latest_start_civil": "05:00", "finish_within": "1h"}
    schedule = office.register(document(NIGHTLY, window=window))
    clock.set(RINGS)
    office.materialize(schedule)
    clock.set(RINGS + timedelta(hours=1))
    [outcome] = office.decide(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("missed", "finish_bound_passed")


@pytest.mark.obligation("WIN-2", boundary="failure")
def test_win_2_a_decision_that_waits_for_the_lock_past_the_bound_is_a_miss(office: Office, evening, clock) -> None:
    """The sample is taken after the lock is had: a decider seen waiting while the bound passes records a miss."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    clock.set(BOUND - A_MICROSECOND)
    answers: list[admission.Decided] = []
    with holding_the_schedule(office):
        waiter = threading.Thread(target=lambda: answers.append(office.decide(schedule)))
        waiter.start()
        wait_until_seen_waiting(office)
        clock.set(BOUND)
    waiter.join()
    assert [outcome.state for outcome in answers[0].outcomes] == ["missed"]
    assert office.count("invocation") == 0


@contextmanager
def holding_the_schedule(office: Office) -> Iterator[None]:
    """Hold every Schedule's row, as another decider would."""
    with psycopg.connect(office.database_url) as connection:
        connection.execute("SELECT FROM nightbell.schedule FOR NO KEY UPDATE")
        yield
        connection.rollback()


def wait_until_seen_waiting(office: Office) -> None:
    """Until somebody is seen waiting for a row lock in this database."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    deadline = time.monotonic() + 10
    while office.value(waiting) == 0:
        assert time.monotonic() < deadline, "nobody was seen waiting"
        time.sleep(0.01)


@pytest.mark.obligation("WIN-3", boundary="failure")
def test_win_3_a_decision_that_is_rolled_back_never_happened(office: Office, evening, clock) -> None:
    """When the commit fails, nothing of the decision is left, and the next decision is a fresh one."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    office.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the commit fails'; END $$",
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON nightbell.delivery DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    with pytest.raises(psycopg.errors.RaiseException):
        office.decide(schedule)
    assert [office.count(table) for table in ("invocation", "run", "delivery", "decision")] == [0, 0, 0, 0]
    office.execute("DROP TRIGGER refuse ON nightbell.delivery")
    clock.set(BOUND)
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["missed"]


@pytest.mark.obligation("WIN-3", boundary="restart")
def test_win_3_a_decider_killed_before_its_commit_decided_nothing(office: Office, evening, clock) -> None:
    """A backend that is ended after its writes and before its COMMIT leaves the Occurrence pending."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    with office.killed_at_commit("delivery"):
        office.decide(schedule)
    assert office.states(schedule) == [("civil_date:2026-01-02", "pending", None)]
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("WIN-4", boundary="failure")
@pytest.mark.obligation("WIN-4", boundary="restart")
def test_win_4_a_lost_acknowledgement_is_answered_from_the_record(office: Office, evening, clock) -> None:
    """The connection is cut between COMMIT and its reply: the same decision id reads the committed answer, also after the
    bound has passed, and nothing is decided twice."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    decision_id = DecisionId(uuid4())
    with DeafProxy(office.database_url) as proxy:
        pool = open_pool(proxy.url, connections_max=1)
        with pytest.raises(StoreProblem):
            admission.decide(pool, schedule, decision_id)
        pool.close()
    clock.set(BOUND)
    answered = office.decide(schedule, decision_id)
    assert [outcome.state for outcome in answered.outcomes] == ["admitted"]
    assert office.decide(schedule, decision_id) == answered
    assert [office.count(table) for table in ("invocation", "run", "delivery")] == [1, 1, 1]


class DeafProxy:
    """Stands between a client and PostgreSQL, and cuts the line once the server has committed and before it can say so."""

    def __init__(self, database_url: str) -> None:
        parts = urlsplit(database_url)
        self._server = (parts.hostname or "", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        account, _, _ = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=f"{account}@127.0.0.1:{self._listener.getsockname()[1]}"))
        self._threads = [threading.Thread(target=self._serve, daemon=True)]

    def __enter__(self) -> "DeafProxy":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
        back = threading.Thread(target=self._hear, args=(server, client), daemon=True)
        back.start()
        while data := client.recv(65_536):
            server.sendall(data)

    def _hear(self, server: socket.socket, client: socket.socket) -> None:
        """Pass everything on until the server says that it committed; then hang up."""
        while data := server.recv(65_536):
            if b"COMMIT\0" in data:
                client.shutdown(socket.SHUT_RDWR)
                client.close()
                return
            client.sendall(data)


@pytest.mark.obligation("WIN-2", boundary="restart")
def test_win_2_a_half_open_client_does_not_hold_the_authority_for_ever(office: Office, evening, clock) -> None:
    """A client that locked the Schedule and then went silent loses its transaction; the next decider gets the lock, samples
    afterwards, and decides."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    with office.pool.connection() as silent:
        silent.execute("SET idle_in_transaction_session_timeout = 600")
        silent.execute("BEGIN")
        silent.execute("SELECT FROM schedule FOR NO KEY UPDATE")
        assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            silent.execute("COMMIT")
        silent.close()


@pytest.mark.obligation("WIN-2", boundary="ordinary")
def test_win_2_every_session_gives_up_its_locks_when_it_falls_silent(office: Office) -> None:
    """Every connection of the store carries the four timeouts and UTC."""
    names = (
        "idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout", "transaction_timeout", "TimeZone",
    )  # fmt: skip
    with office.pool.connection() as connection:
        found = [connection.execute(f"SHOW {name}").fetchone() for name in names]
    assert found == [("2s",), ("2s",), ("2500ms",), ("8s",), ("UTC",)]


@pytest.mark.obligation("WIN-2", boundary="failure")
@pytest.mark.obligation("WIN-3", boundary="failure")
def test_win_2_a_decider_that_hangs_in_the_middle_of_its_turn_loses_it(office: Office, evening, clock) -> None:
    """A turn that holds the lock and stops between two statements is not idle to the server: it is ended all the same, another
    decides, and what the hung one then writes is nothing."""
    schedule = office.register(document(NIGHTLY))
    clock.set(RINGS)
    office.materialize(schedule)
    holds, may_go_on = threading.Event(), threading.Event()
    hung: list[BaseException] = []

    def hang() -> None:
        try:
            with turn(office.pool, DecisionId(uuid4()), own_schedule(schedule)) as held:
                holds.set()
                may_go_on.wait(60)
                held.write(sql.SQL("UPDATE schedule SET halted_reason = 'written by nobody'"))
        except BaseException as problem:
            hung.append(problem)

    silent = threading.Thread(target=hang)
    silent.start()
    assert holds.wait(10)
    assert [outcome.state for outcome in patiently(office.decide, schedule).outcomes] == ["admitted"]
    may_go_on.set()
    silent.join()
    assert isinstance(hung[0], ServerUnreachable)
    assert office.value("SELECT halted_reason FROM nightbell.schedule") is None


@pytest.mark.obligation("WIN-5", boundary="failure")
@pytest.mark.obligation("WIN-5", boundary="restart")
def test_win_5_a_worker_that_was_away_over_the_window_records_the_miss(office: Office, evening, clock) -> None:
    """First looked at after the bound: the firing becomes an Occurrence, and that Occurrence a miss with both instants."""
    schedule = office.register(document(NIGHTLY))
    clock.set(BOUND + timedelta(hours=1))
    [outcome] = office.ring(schedule).outcomes
    assert (outcome.state, outcome.reason) == ("missed", "latest_start_passed")
    evidence = office.value("SELECT evidence FROM nightbell.decision WHERE outcome = 'missed'")
    assert evidence == {"bound": "2026-01-02T04:00:00Z", "decision_time": "2026-01-02T05:00:00Z"}
    assert office.count("run") == 0


@pytest.mark.obligation("WIN-6", boundary="ordinary")
@pytest.mark.obligation("WIN-6", boundary="failure")
@pytest.mark.obligation("WIN-6", boundary="restart")
def test_win_6_before_eligibility_an_occurrence_waits_as_a_row(office: Office, evening, clock) -> None:
    """A jittered firing waits with its reason and its instant; time alone makes it eligible, whoever asks then."""
    schedule = office.register(document(NIGHTLY, jitter={"mode": "deterministic", "max": "30m"}))
    clock.set(RINGS)
    decided = office.ring(schedule)
    assert decided.outcomes == ()
    assert office.states(schedule) == [("civil_date:2026-01-02", "pending", "not_yet_eligible")]
    assert decided.wake_at is not None and RINGS < decided.wake_at < RINGS + timedelta(minutes=30)
    clock.set(decided.wake_at - A_MICROSECOND)
    assert office.decide(schedule).outcomes == ()
    clock.set(decided.wake_at)
    assert [outcome.state for outcome in office.decide(schedule).outcomes] == ["admitted"]


@pytest.mark.obligation("WIN-7", boundary="failure")
@pytest.mark.obligation("WIN-7", boundary="restart")
@pytest.mark.obligation("WIN-7", boundary="ordinary")
def test_win_7_a_clock_that_steps_back_reopens_nothing(office: Office, evening, clock) -> None:
    """After a miss, a clock set back into the window changes nothing that was decided, mints nothing, and is recorded."""
    schedule = office.register(document(NIGHTLY))
    clock.set(BOUND)
    office.ring(schedule)
    clock.set(RINGS)
    assert office.ring(schedule).outcomes == ()
    assert office.states(schedule) == [("civil_date:2026-01-02", "missed", "latest_start_passed")]
    bridge = office.register(document(BRIDGE, overlap={"policy": "bounded_parallel", "max": 9}))
    for instant, event in ((RINGS + timedelta(hours=1), "one"), (RINGS, "two")):
        clock.set(instant)
        office.offer(bridge, event)
        assert [outcome.state for outcome in office.decide(bridge).outcomes] == ["admitted"]
    regressed = "SELECT clock_regressed FROM nightbell.round WHERE act = 'decide' AND sampled_at = %s"
    assert office.value(regressed, RINGS + timedelta(hours=1)) is False
    assert office.value(regressed, RINGS) is True
