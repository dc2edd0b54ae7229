"""Every case of the independent oracle: civil times resolved by the zone rules that each case names."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from law.cron import parse_cron
from law.errors import BadInput
from law.firings import count_firings, firings, newest_firings
from law.triggers import CalendarTrigger
from law.zone_rules import ZoneRules, rules_from
from store.zone_rules import installed_rules

CASES = Path(__file__).parent / "cases"
ORACLE = json.loads((CASES / "calendar.json").read_text())


def rules_of(case: dict) -> ZoneRules:
    """The rules of the release that the case names: the installed one, or kept bytes."""
    installed = installed_rules(case["zone"])
    if installed.release == case["tzdata"]:
        return installed
    kept = CASES / "zones" / case["tzdata"] / case["zone"].replace("/", "__")
    return rules_from(case["zone"], case["tzdata"], kept.read_bytes())


def trigger_of(case: dict) -> CalendarTrigger:
    when = {"cron": case["cron"]} if "cron" in case else {"dates": case["civil_times"]}
    return CalendarTrigger(kind="calendar", zone=case["zone"], fold=case["fold"], gap=case["gap"], **when)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.obligation("CAL-2", boundary="ordinary")
@pytest.mark.obligation("CAL-3", boundary="ordinary")
@pytest.mark.parametrize("case", ORACLE["cases"], ids=[case["id"] for case in ORACLE["cases"]])
def test_cal_2_and_3_every_case_of_the_oracle_is_equal(case: dict) -> None:
    """The firings of each case, in order, with civil time, fold member, kind and instant; and the same set in reverse."""
    window = (trigger_of(case), "nominal", rules_of(case), instant(case["from"]), instant(case["to"]))
    found = list(firings(*window))
    expected = [
        (
            datetime.fromisoformat(one["civil"]),
            one["fold"],
            one["kind"],
            instant(one["at"]),
            instant(one["instant_utc"]) if one["instant_utc"] else None,
        )
        for one in case["expected"]
    ]
    assert [(one.civil, one.fold, one.kind, one.at, one.nominal_at) for one in found] == expected
    assert list(newest_firings(*window)) == found[::-1]
    assert count_firings(window[0], *window[2:]) == len(found)


@pytest.mark.obligation("CAL-1", boundary="failure")
@pytest.mark.parametrize("reject", ORACLE["rejects"], ids=[repr(one["cron"][:30]) for one in ORACLE["rejects"]])
def test_cal_1_what_cannot_be_read_or_never_fires_is_refused_at_once(reject: dict) -> None:
    """Hostile, unreadable and never-firing expressions are refused with the field's name."""
    text = reject["cron"] if not reject["generate"] else "*/" + "9" * 5000 + " * * * *"
    with pytest.raises(BadInput, match=r"trigger\.cron"):
        parse_cron(text)
