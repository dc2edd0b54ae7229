"""The pure law of admission, ending and the fence: every verdict at its edge, without a database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from law.authority import Credentials
from law.bounds import Bounds
from law.candidates import Candidate, Ground
from law.fence import judge_claim
from law.finish import FinishTerms, Report, judge_ending, judge_lost
from law.identity import ScheduleName, TriggerOccurrenceId
from law.overlap import Live, OverlapTerms, judge_overlap
from law.reasons import MEANINGS, Disposition, OccurrenceState, Reason, RunState
from law.selection import decide
from law.window import changes_at, judge_window

AT = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
A_MICROSECOND = timedelta(microseconds=1)
HELD = Credentials("magus", "active", "rite", "active", "sha256:a", "sha256:a")
HOME = ScheduleName("home/one")


def candidate(number: int, **changes: object) -> Candidate:
    """A foreground candidate, eligible now."""
    plain = Candidate(
        TriggerOccurrenceId(UUID(int=number)),
        HOME,
        "foreground",
        Bounds(AT),
        OverlapTerms("bounded_parallel", 99),
        HELD,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.obligation("WIN-1", boundary="failure")
@pytest.mark.parametrize("bound", ["latest_start_at", "finish_by"])
def test_win_1_each_upper_bound_is_closed_at_equality(bound: str) -> None:
    """At the bound it is a miss, a microsecond before it is not."""
    bounds = replace(
        Bounds(AT, AT, AT + timedelta(hours=9), AT + timedelta(hours=9)), **{bound: AT + timedelta(hours=1)}
    )
    late = judge_window(bounds, AT + timedelta(hours=1))
    assert late is not None
    assert late.state is OccurrenceState.MISSED
    assert judge_window(bounds, AT + timedelta(hours=1) - A_MICROSECOND) is None


@pytest.mark.obligation("WIN-6", boundary="ordinary")
def test_win_6_before_it_opens_it_waits_and_says_until_when() -> None:
    """A wait names the instant at which time alone changes it, then the next bound, then none."""
    bounds = Bounds(AT, AT, AT + timedelta(hours=1))
    waits = judge_window(bounds, AT - A_MICROSECOND)
    assert waits is not None
    assert (waits.state, waits.reason) == (OccurrenceState.PENDING, Reason.NOT_YET_ELIGIBLE)
    assert [changes_at(bounds, AT + timedelta(hours=hours)) for hours in (-1, 0, 1)] == [
        AT,
        AT + timedelta(hours=1),
        None,
    ]


@pytest.mark.obligation("OVL-2", boundary="ordinary")
@pytest.mark.obligation("OVL-3", boundary="ordinary")
@pytest.mark.obligation("OVL-4", boundary="ordinary")
@pytest.mark.parametrize(
    ("policy", "ceiling", "live", "state"),
    [
        ("forbid", 1, 0, None),
        ("forbid", 1, 1, OccurrenceState.SUPPRESSED),
        ("serialize", 1, 1, OccurrenceState.PENDING),
        ("bounded_parallel", 3, 2, None),
        ("bounded_parallel", 3, 3, OccurrenceState.PENDING),
    ],
)
def test_ovl_each_policy_at_its_ceiling(policy: str, ceiling: int, live: int, state: OccurrenceState | None) -> None:
    """Below the ceiling it may begin; at it, it is suppressed or waits as pinned."""
    verdict = judge_overlap(OverlapTerms(policy, ceiling), Live(live))  # type: ignore[arg-type]
    assert (verdict.state if verdict else None) is state


@pytest.mark.obligation("AUT-3", boundary="ordinary")
@pytest.mark.obligation("AUT-3", boundary="failure")
def test_aut_3_neither_priority_nor_lateness_revives_a_credential() -> None:
    """A revoked owner is refused whatever the candidate's class, priority and age."""
    gone = replace(HELD, owner_standing="revoked")
    for changes in ({"priority": 100}, {"aging_seconds": 1.0}, {"service_class": "spare_capacity"}):
        [judged] = decide([candidate(1, credentials=gone, **changes)], Ground(AT + timedelta(days=9)))
        assert judged.verdict.state is OccurrenceState.REVOKED


@pytest.mark.obligation("AUT-1", boundary="failure")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"owner_standing": None}, Reason.OWNER_UNKNOWN),
        ({"owner_standing": "suspended"}, Reason.OWNER_REVOKED),
        ({"pattern_standing": None}, Reason.PATTERN_UNKNOWN),
        ({"pattern_standing": "revoked"}, Reason.PATTERN_REVOKED),
        ({"pattern_digest": "sha256:b"}, Reason.PATTERN_CHANGED),
        ({"runs_per_day_max": 2, "runs_in_last_day": 2}, Reason.BUDGET_SPENT),
    ],
)
def test_aut_1_each_loss_has_its_own_reason(changes: dict, reason: Reason) -> None:
    """What is missing or withdrawn is named."""
    [judged] = decide([candidate(1, credentials=replace(HELD, **changes))], Ground(AT))
    assert judged.verdict.reason is reason


@pytest.mark.obligation("SEL-1", boundary="ordinary")
@pytest.mark.obligation("SEL-1", boundary="failure")
def test_sel_1_what_cannot_be_admitted_takes_no_place_from_what_can() -> None:
    """Revoked and expired candidates are judged out first, and the one place goes to the lawful one."""
    forbid = OverlapTerms("forbid")
    revoked = candidate(1, overlap=forbid, credentials=replace(HELD, owner_standing="revoked"), priority=99)
    expired = candidate(2, overlap=forbid, bounds=Bounds(AT, AT, AT), priority=98)
    lawful = candidate(3, overlap=forbid)
    states = {
        one.candidate.trigger_occurrence_id.int: one.verdict.state
        for one in decide([revoked, expired, lawful], Ground(AT))
    }
    assert states == {1: OccurrenceState.REVOKED, 2: OccurrenceState.MISSED, 3: OccurrenceState.ADMITTED}


@pytest.mark.obligation("SEL-3", boundary="ordinary")
@pytest.mark.obligation("SEL-3", boundary="failure")
def test_sel_3_priority_then_aging_order_candidates_of_a_class() -> None:
    """The higher priority goes first, unless the other has waited long enough to overtake it."""
    one_place = OverlapTerms("bounded_parallel", 1)
    old = candidate(1, overlap=one_place, priority=50, aging_seconds=60.0, bounds=Bounds(AT - timedelta(minutes=20)))
    new = candidate(2, overlap=one_place, priority=60)
    first = [
        judged.candidate
        for judged in decide([new, old], Ground(AT))
        if judged.verdict.state is OccurrenceState.ADMITTED
    ]
    assert first == [old]
    young = replace(old, bounds=Bounds(AT - timedelta(minutes=5)))
    first = [
        judged.candidate
        for judged in decide([young, new], Ground(AT))
        if judged.verdict.state is OccurrenceState.ADMITTED
    ]
    assert first == [new]


@pytest.mark.obligation("SEL-6", boundary="ordinary")
@pytest.mark.obligation("SEL-6", boundary="failure")
def test_sel_6_the_order_of_arrival_changes_nothing() -> None:
    """Any permutation of the candidates gets the same answers."""
    some = [candidate(number, overlap=OverlapTerms("bounded_parallel", 3), priority=number % 3) for number in range(8)]
    expected = decide(some, Ground(AT))
    for turned in range(1, 8):
        assert decide([*some[turned:], *some[:turned]], Ground(AT)) == expected


@pytest.mark.obligation("IDN-2", boundary="ordinary")
@pytest.mark.parametrize(
    ("state", "current", "offered", "claimed", "reason"),
    [
        (RunState.QUEUED, 0, 0, False, Reason.CLAIMED),
        (RunState.RUNNING, 0, 0, True, Reason.DUPLICATE_DELIVERY),
        (RunState.QUEUED, 2, 1, True, Reason.STALE_DELIVERY),
        (RunState.QUEUED, 1, 2, False, Reason.STALE_DELIVERY),
        (RunState.DONE, 0, 0, False, Reason.STALE_DELIVERY),
        (RunState.CONTAINED, 0, 0, False, Reason.STALE_DELIVERY),
    ],
)
def test_idn_2_the_fence_lets_in_the_offered_hop_once(state, current, offered, claimed, reason) -> None:
    """Only the hop that the Run offers, and only while nobody took it."""
    assert judge_claim(state, current, offered, claimed) is reason


@pytest.mark.obligation("FIN-1", boundary="failure")
@pytest.mark.obligation("FIN-3", boundary="failure")
def test_fin_1_the_proof_must_be_valid_and_the_sample_before_the_bound() -> None:
    """A microsecond decides between timely and unmet; an invalid proof is never timely."""
    terms = FinishTerms(AT, "proof")
    good, bad = Report("done", "proof"), Report("done", "proof", "it is empty")
    before, at = AT - A_MICROSECOND, AT
    assert judge_ending(good, terms, Disposition.OPEN, 0, before).disposition is Disposition.TIMELY
    assert judge_ending(good, terms, Disposition.OPEN, 0, at).disposition is Disposition.UNMET
    assert judge_ending(bad, terms, Disposition.OPEN, 0, before).state is RunState.FAILED
    assert judge_ending(good, terms, Disposition.UNMET, 0, before).disposition is Disposition.UNMET


@pytest.mark.obligation("FIN-3", boundary="ordinary")
@pytest.mark.obligation("FIN-5", boundary="ordinary")
def test_fin_3_an_effect_in_doubt_keeps_the_run_nonterminal_past_its_bound() -> None:
    """Expiry ends nothing: doubt contains the Run whatever the report says, and whatever the clock says."""
    for ending in ("done", "failed", "yielded", "refused"):
        judged = judge_ending(Report(ending), FinishTerms(AT), Disposition.OPEN, 1, AT + timedelta(days=1))
        assert (judged.state, judged.disposition) == (RunState.CONTAINED, Disposition.UNMET)


@pytest.mark.obligation("IDN-5", boundary="failure")
@pytest.mark.parametrize(
    ("in_doubt", "may_return", "lost", "state", "reason"),
    [
        (1, True, 0, RunState.CONTAINED, Reason.EFFECT_IN_DOUBT),
        (0, True, 0, RunState.QUEUED, Reason.RETURNED),
        (0, False, 0, RunState.FAILED, Reason.LOST),
        (0, True, 10, RunState.FAILED, Reason.LOST),
    ],
)
def test_idn_5_a_lost_worker_is_judged_by_what_it_left(in_doubt, may_return, lost, state, reason) -> None:
    """Contained in doubt, returned where lawful, otherwise lost; never simply run again."""
    judged = judge_lost(FinishTerms(), Disposition.UNTIMED, in_doubt, may_return, lost, AT)
    assert (judged.state, judged.reason) == (state, reason)


@pytest.mark.obligation("EVD-1", boundary="failure")
def test_evd_1_every_reason_has_its_meaning_and_nothing_else_has() -> None:
    """The closed list is closed on both sides, and cites covenant ids."""
    assert set(MEANINGS) == set(Reason)
    assert all(meaning.obligations and meaning.sentence for meaning in MEANINGS.values())
