"""External firings: one event, one Occurrence; changed content fails closed; nobody raises their own class."""

import threading
from uuid import UUID, uuid4

import pytest

from law.errors import BadInput, ContentChanged, UnknownSchedule
from law.identity import DecisionId, RunId, ScheduleName
from store import ledger, offers
from tests.office import BRIDGE, NIGHTLY, Office, document


@pytest.mark.obligation("OCC-4", boundary="ordinary")
def test_occ_4_the_same_event_is_the_same_occurrence_and_outcome(office: Office, evening) -> None:
    """A repeat answers with the first Occurrence and what became of it, also after its Run has settled."""
    schedule = office.register(document(BRIDGE))
    first = office.offer(schedule, "hello", {"message": "1 + 1"})
    assert (first.created, first.state) == (True, "pending")
    office.done(RunId(UUID(office.decide(schedule).outcomes[0].run_id)))
    again = office.offer(schedule, "hello", {"message": "1 + 1"})
    assert (again.created, again.state, again.trigger_occurrence_id) == (False, "admitted", first.trigger_occurrence_id)
    assert office.count("occurrence") == office.count("run") == 1


@pytest.mark.obligation("OCC-4", boundary="failure")
def test_occ_4_changed_content_fails_closed_and_names_both_digests(office: Office, evening) -> None:
    """The same event with other content is refused with both digests, and changes nothing."""
    schedule = office.register(document(BRIDGE))
    office.offer(schedule, "hello", {"message": "1 + 1"})
    with pytest.raises(ContentChanged) as refusal:
        office.offer(schedule, "hello", {"message": "1 + 2"})
    assert str(refusal.value).count("sha256:") == 2
    assert office.states(schedule) == [("event:bridge:hello", "pending", None)]


@pytest.mark.obligation("OCC-4", boundary="restart")
@pytest.mark.obligation("OCC-5", boundary="restart")
def test_occ_5_an_offer_killed_before_its_commit_may_be_offered_again(office: Office, evening) -> None:
    """An offer that is ended before its COMMIT left nothing; the repeat makes the one Occurrence."""
    schedule = office.register(document(BRIDGE))
    with office.killed_at_commit("occurrence"):
        office.offer(schedule, "hello")
    assert office.offer(schedule, "hello").created
    assert not office.offer(schedule, "hello").created


@pytest.mark.obligation("OCC-5", boundary="ordinary")
def test_occ_5_an_event_belongs_to_the_revision_active_at_its_first_assignment(office: Office, evening) -> None:
    """A registered but inactive revision owns nothing."""
    schedule = office.register(document(BRIDGE))
    office.register(document(BRIDGE, class_={"service_class": "foreground", "priority": 90}))
    assert office.offer(schedule, "hello").revision == 1


@pytest.mark.obligation("OCC-5", boundary="failure")
def test_occ_5_offers_that_race_make_one_occurrence(office: Office, evening) -> None:
    """Eight offers of one event at once: one makes it, seven find it."""
    schedule = office.register(document(BRIDGE))
    made: list[bool] = []
    senders = [threading.Thread(target=lambda: made.append(office.offer(schedule, "hello").created)) for _ in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(made) == [*[False] * 7, True]


@pytest.mark.obligation("CLS-2", boundary="ordinary")
@pytest.mark.obligation("CLS-2", boundary="failure")
@pytest.mark.obligation("CLS-1", boundary="ordinary")
def test_cls_2_a_sender_never_raises_its_own_class(office: Office, evening) -> None:
    """Asking for more than the Schedule's class gets the Schedule's class, with what was asked for on the record; asking for a
    class whose window nobody declared is refused."""
    spare = office.register(document(BRIDGE, class_={"service_class": "spare_capacity"}))
    asked = offers.Offer(spare, "bridge", "one", {}, "foreground", "a2a_peer", "elsewhere")
    offered = offers.offer(office.pool, asked, DecisionId(uuid4()))
    occurrence = ledger.explain(office.pool, offered.trigger_occurrence_id)["occurrence"]
    assert (occurrence["requested_class"], occurrence["service_class"]) == ("foreground", "spare_capacity")
    assert (occurrence["origin"], occurrence["origin_principal"]) == ("a2a_peer", "elsewhere")
    foreground = office.register(document(BRIDGE, name="talk"))
    with pytest.raises(BadInput, match="class"):
        asked = offers.Offer(foreground, "bridge", "one", {}, "deadline_windowed")
        offers.offer(office.pool, asked, DecisionId(uuid4()))


@pytest.mark.parametrize(
    ("source", "event_id", "content", "field"),
    [
        ("elsewhere", "one", {}, "source"),
        ("Not A Slug", "one", {}, "source"),
        ("bridge", "", {}, "event_id"),
        ("bridge", "x" * 513, {}, "event_id"),
        ("bridge", "two\nlines", {}, "event_id"),
        ("bridge", "one", {"number": float("nan")}, "content"),
        ("bridge", "one", {"text": "x" * 300_000}, "content"),
        ("bridge", "one", {"number": 2**60}, "content"),
    ],
)
def test_a_bad_offer_names_its_field_and_changes_nothing(
    office: Office, evening, source, event_id, content, field
) -> None:
    """Hostile and mistaken offers are refused with the field at fault."""
    schedule = office.register(document(BRIDGE))
    with pytest.raises(BadInput, match=field):
        offers.offer(office.pool, offers.Offer(schedule, source, event_id, content), DecisionId(uuid4()))
    assert office.count("occurrence") == 0


def test_a_calendar_takes_no_events_and_an_unknown_schedule_is_named(office: Office, evening) -> None:
    """Events ring external Schedules that exist, and nothing else."""
    calendar = office.register(document(NIGHTLY))
    with pytest.raises(BadInput, match="calendar"):
        office.offer(calendar, "one")
    with pytest.raises(UnknownSchedule):
        office.offer(ScheduleName("home/nobody"), "one")
