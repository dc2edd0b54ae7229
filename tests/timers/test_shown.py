"""What the Temporal UI says, read as a person reads it: words, instants, counts, and whose hand is wanted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from workflows import asks
from workflows.shown import Shown, details, hop_details, relay_details, state_word, until, what_is_asked

AT = datetime(2026, 1, 2, 1, 0, 1, tzinfo=UTC)
BELL = datetime(2026, 1, 3, 1, 0, tzinfo=UTC)
CIVIL = "2026-01-03 02:00 Europe/Bratislava"
ADMITTED = asks.OutcomeLine("an-id", "civil_date:2026-01-02", "admitted", "admitted", "a-run", "2026-01-02 02:00 Z", AT)
SHOWN = Shown(
    "home/rite", 3, "deadline_windowed", next_nominal_at=BELL, next_civil=CIVIL, wake_at=BELL, wake_civil=CIVIL
)


def test_a_page_says_what_it_waits_for_in_utc_and_on_the_clock_there() -> None:
    """The next bell stands once, with its instant and its civil time, and so does the timer's summary."""
    page = details(SHOWN, AT)
    assert page.startswith("**home/rite**, revision 3, deadline_windowed")
    assert page.count("2026-01-03T01:00:00Z (2026-01-03 02:00 Europe/Bratislava)") == 1
    assert "Nothing rang yet." in page
    assert until(SHOWN) == f"until 2026-01-03T01:00:00Z ({CIVIL}), the next bell"
    assert what_is_asked(SHOWN) == f"what rang? revision 3, expected {CIVIL}"


def test_a_hint_before_the_bell_is_said_beside_it() -> None:
    """Something that waits may change earlier than the bell rings: both instants stand there."""
    shown = replace(
        SHOWN, wake_at=BELL - timedelta(hours=1), wake_civil="2026-01-03 01:00 Europe/Bratislava", pending=2
    )
    page = details(shown, AT)
    assert "Rings next at 2026-01-03T01:00:00Z" in page
    assert "Looks again at 2026-01-03T00:00:00Z (2026-01-03 01:00 Europe/Bratislava)" in page
    assert "Waiting to be admitted: 2" in page
    assert until(shown).endswith("something that waits may change")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run_state": "done", "run_reason": "finished"}, "admitted, its Run done"),
        ({"run_state": "running"}, "admitted, its Run running"),
        (
            {"run_state": "done", "run_reason": "finished_late"},
            "**done**: the Pattern completed at or after its finish",
        ),
        ({"run_state": "contained", "run_reason": "effect_in_doubt"}, "**contained**: an effect that was begun has no"),
        ({"state": "missed", "reason": "latest_start_passed"}, "**missed**: the decision came at or after its latest"),
        ({"state": "pending", "reason": "capacity"}, "waits: no capacity is known to be free"),
        ({"state": "pending", "reason": ""}, "waits"),
        ({"state": "refused", "reason": "of a later version"}, "**refused**: of a later version"),
    ],
)
def test_every_end_of_an_occurrence_is_said_in_words(changes: dict[str, str], said: str) -> None:
    """What became of what rang, with the reason's own sentence; what is not simply done names the command that tells more."""
    line = replace(ADMITTED, **changes)
    [words] = [one for one in details(replace(SHOWN, outcomes=[line]), AT).splitlines() if "2026-01-02 02:00 Z" in one]
    assert said in words
    assert ("nightbell explain an-id" in words) == ("**" in said)


@pytest.mark.parametrize(
    ("changes", "word", "said"),
    [
        (
            {"halted": "The rules of Europe/Bratislava are gone."},
            "halted",
            "**Halted**: The rules of Europe/Bratislava",
        ),
        ({"held": 1}, "held", "**Held**: 1 Run is parked or contained. Look: `nightbell runs home/rite"),
        ({"held": 2}, "held", "**Held**: 2 Runs are parked or contained."),
        ({"paused": True, "halted": "paused since noon"}, "paused", "**Paused** since noon. Nothing of it is admitted"),
        ({"refused": "no `revision` 9"}, "waiting", "**Activation refused**: no 'revision' 9"),
        ({"wake_at": None, "next_nominal_at": None}, "idle", "Waits until somebody rings."),
    ],
)
def test_what_wants_a_hand_is_one_word_in_the_list_and_a_sentence_on_the_page(changes, word: str, said: str) -> None:
    """The search attribute finds it, the page says what it is and what to do."""
    shown = replace(SHOWN, **changes)
    assert state_word(shown) == word
    assert said in details(shown, AT)


def test_an_event_id_cannot_draw_on_the_page() -> None:
    """Text from outside stays one line inside its code mark, and is cut where nobody would read on."""
    hostile = "`\n\n# heading\n- [x](javascript:y)" + "z" * 200
    [line] = [
        one
        for one in details(replace(SHOWN, outcomes=[replace(ADMITTED, rang=hostile)]), AT).splitlines()
        if "z" in one
    ]
    assert line.startswith("- `' # heading - [x](javascript:y)zz")
    assert line.count("`") == 2
    assert "…` admitted" in line


def test_no_list_stands_within_a_list() -> None:
    """The UI runs nested items together: every item begins at the margin."""
    page = details(replace(SHOWN, outcomes=[ADMITTED, ADMITTED], held=1, undelivered=2), AT)
    assert not [line for line in page.splitlines() if line.startswith(" ")]


def test_the_pages_of_a_hop_and_of_the_relay_are_sentences() -> None:
    """Whose hop it is, how it ended and why; and a relay with nothing to do says that."""
    hop = asks.HopAsk("a-run", 1, "home/rite", "nightly_rite")
    assert "Its Run is failed: its worker was lost and its Pattern does not permit a return." in hop_details(
        hop, "failed", "lost"
    )
    assert "Not begun: a newer hop of this Run exists, or it is settled." in hop_details(
        hop, "not claimed", "stale_delivery"
    )
    assert "Nothing was left behind." in relay_details(asks.Swept(), 3.0, AT)
    assert "Runs whose worker was lost, and which were decided about: 1" in relay_details(asks.Swept(0, 0, 1), 3.0, AT)
