"""CronJobs are carried over as Kubernetes means them, and what no Schedule can say is said field by field."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law.errors import BadInput, UnknownZone
from law.firings import firings
from law.triggers import CalendarTrigger
from nightbell.importing.cronjobs import read_cronjobs
from nightbell.importing.drafts import Terms, chosen_pattern, drafted
from nightbell.importing.entries import Entry, Found
from nightbell.importing.source import read_yaml
from patterns.catalogue import installed
from store.zone_rules import installed_rules

TERMS = Terms("home", "home", chosen_pattern("nightly_rite", "", installed()))

MANIFEST = """\
# what a team keeps beside its chart
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly-report
  namespace: shop
  labels: &labels {app: shop}
spec:
  schedule: "30 2 * * 1-5"
  timeZone: Europe/Bratislava
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 600
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 1
  jobTemplate:
    metadata: {labels: *labels}
    spec:
      backoffLimit: 2
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: report
            image: registry.example.org/report:7
            command: ["/bin/report", "--all"]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: beside-it}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: sweep, creationTimestamp: 2026-01-02T03:04:05Z}
  spec: {schedule: "@hourly", suspend: true, jobTemplate: {}}
  status: {lastScheduleTime: 2026-11-30T23:00:00Z}
- apiVersion: batch/v1beta1
  kind: CronJob
  metadata: {name: sweep, namespace: other}
  spec: {schedule: "CRON_TZ=Asia/Tokyo 5 4 * * ?", concurrencyPolicy: Replace, suspend: false, jobTemplate: {}}
"""


def job(schedule: str = "0 1 * * *", **spec: Any) -> dict[str, Any]:
    spec = {"schedule": schedule, "timeZone": "Europe/Bratislava", "jobTemplate": {}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "one"}, "spec": spec}


def read(*documents: Any, zone: str | None = None) -> Found:
    return read_cronjobs(list(documents), zone, 10)


def one(schedule: str = "0 1 * * *", **spec: Any) -> Entry:
    """The one entry of a CronJob that is carried over."""
    found = read(job(schedule, **spec))
    assert not found.refused
    [entry] = found.entries
    return entry


def refusal(schedule: str = "0 1 * * *", **spec: Any) -> str:
    """Why a CronJob is not carried over."""
    found = read(job(schedule, **spec))
    assert not found.entries
    [refused] = found.refused
    return refused.reason


def lost(entry: Entry) -> dict[str, str]:
    return {loss.what: loss.sentence for loss in entry.losses}


def test_a_manifest_of_several_documents_and_a_list() -> None:
    """Every CronJob is found, names are distinct, what is none is passed over, the Pods are said to be lost."""
    found = read(*read_yaml(MANIFEST), zone="UTC")
    assert [(entry.where, entry.name) for entry in found.entries] == [
        ("CronJob shop/nightly-report", "nightly-report"),
        ("CronJob sweep", "sweep"),
        ("CronJob other/sweep", "sweep-2"),
    ]
    assert not found.refused
    assert found.passed_over == ("document 2, a ConfigMap",)
    assert [loss.what for loss in found.losses] == ["the jobTemplates"]
    report, sweep, tokyo = found.entries
    assert report.tables == {
        "trigger": {
            "kind": "calendar", "cron": "30 2 * * 1-5", "zone": "Europe/Bratislava", "fold": "both", "gap": "skip",
        },
        "class": {"service_class": "deadline_windowed"},
        "window": {"allowed_delay": "600s"},
        "overlap": {"policy": "forbid"},
    }  # fmt: skip
    assert report.original == (
        "schedule: 30 2 * * 1-5",
        "timeZone: Europe/Bratislava",
        "concurrencyPolicy: Forbid",
        "startingDeadlineSeconds: 600",
    )
    assert set(lost(report)) == {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}
    assert sweep.tables["trigger"]["zone"] == "UTC"
    assert "pause the Schedule" in lost(sweep)["suspend: true"]
    assert (tokyo.tables["trigger"]["cron"], tokyo.tables["trigger"]["zone"]) == ("5 4 * * *", "Asia/Tokyo")
    assert "suspend: true" not in lost(tokyo)


@pytest.mark.obligation("CAL-1", boundary="failure")
def test_cal_1_a_job_without_a_time_zone_is_not_guessed() -> None:
    """Alone it is refused with the reason; with --zone it has that one; its own zone always wins."""
    assert "cluster" in refusal(timeZone=None)
    assert "Mars/Base" in refusal(timeZone="Mars/Base")
    assert "Local" in refusal(timeZone="Local")
    assert "both" in refusal("TZ=UTC 0 1 * * *")
    found = read(job(timeZone=None), job(), zone="Asia/Tokyo")
    assert [entry.tables["trigger"]["zone"] for entry in found.entries] == ["Asia/Tokyo", "Europe/Bratislava"]
    with pytest.raises(UnknownZone):
        read(job(), zone="Mars/Base")


def test_every_concurrency_policy_has_its_nearest_lawful_one() -> None:
    """Allow is bounded, Forbid is forbid, Replace becomes forbid, and what changes is said; the default is Allow."""
    assert one(concurrencyPolicy="Forbid").tables["overlap"] == {"policy": "forbid"}
    for allowed in (one(), one(concurrencyPolicy="Allow")):
        assert allowed.tables["overlap"] == {"policy": "bounded_parallel", "max": 10}
        assert "at most 10" in lost(allowed)["concurrencyPolicy: Allow"]
    replaced = one(concurrencyPolicy="Replace")
    assert replaced.tables["overlap"] == {"policy": "forbid"}
    assert "never cut off" in lost(replaced)["concurrencyPolicy: Replace"]


def test_a_deadline_is_a_window_and_none_is_foreground() -> None:
    """The only class without a latest start; a deadline that nothing can meet is refused."""
    tables = one(startingDeadlineSeconds=10).tables
    assert (tables["class"], tables["window"]) == (
        {"service_class": "deadline_windowed"},
        {"allowed_delay": "10s"},
    )
    late = one()
    assert late.tables["class"] == {"service_class": "foreground"}
    assert "window" not in late.tables
    assert any("foreground" in sentence for sentence in lost(late).values())
    assert "startingDeadlineSeconds" in refusal(startingDeadlineSeconds=0)


def test_what_else_a_spec_says_is_named() -> None:
    """Also what nobody knows yet."""
    assert "spec.fromTheFuture" in lost(one(fromTheFuture={"x": 1}))


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ("0 1 * * *", "0 1 * * *"),
        ("@daily", "@daily"),
        ("0 1 ? * MON", "0 1 * * MON"),
        ("0 1 */2 * 1", "0 1 1-31/2 * 1"),
        ("0 1 13 * */2", "0 1 13 * 0-6/2"),
        ("0 1 */1 * 1", "0 1 */1 * 1"),
        ("0 1 */2 * *", "0 1 */2 * *"),
        ("0 1 5,* * 1", "0 1 * * 1"),
        ("*/5 0/6 1,15 JAN-MAR sun", "*/5 0/6 1,15 JAN-MAR sun"),
    ],
)
def test_an_expression_is_spelled_so_that_it_means_what_kubernetes_means(schedule: str, cron: str) -> None:
    """A question mark is a star, and a stepped star in a day field is joined by OR there."""
    assert one(schedule).tables["trigger"]["cron"] == cron


def rung_at(entry: Entry, start: datetime, length: timedelta) -> list[datetime]:
    trigger = CalendarTrigger.model_validate(entry.tables["trigger"])
    found = firings(trigger, "nominal", installed_rules(trigger.zone), start, start + length)
    return [each.nominal_at for each in found if each.nominal_at is not None]


def test_a_stepped_day_or_a_weekday() -> None:
    """Every other day, and Mondays too: in January 2027 the odd days, and 4, 18 among the Mondays."""
    found = rung_at(one("0 1 */2 * 1", timeZone="UTC"), datetime(2027, 1, 1, tzinfo=UTC), timedelta(days=31))
    assert [at.day for at in found] == sorted({*range(1, 32, 2), 4, 11, 18, 25})


@pytest.mark.obligation("CAL-3", boundary="ordinary")
def test_cal_3_changes_of_the_clocks_are_those_of_the_library_behind_kubernetes() -> None:
    """Its own suite: a nightly job at one runs twice as the clocks go back; one at two is not run as they go forward."""
    back = one("0 1 * * *", timeZone="America/New_York")
    assert rung_at(back, datetime(2012, 11, 4, 4, tzinfo=UTC), timedelta(hours=20)) == [
        datetime(2012, 11, 4, 5, tzinfo=UTC),
        datetime(2012, 11, 4, 6, tzinfo=UTC),
    ]
    forward = one("30 2 * * *", timeZone="America/New_York")
    assert not rung_at(forward, datetime(2012, 3, 11, 5, tzinfo=UTC), timedelta(hours=20))


@pytest.mark.parametrize(
    ("schedule", "names"),
    [
        ("@every 90m", "@every"),
        ("@reboot", "@reboot"),
        ("* * * *", "five fields"),
        ("0 0 0 * * *", "five fields"),
        ("61 * * * *", "61"),
        ("", "five fields"),
        ("0 0 * * 1/2", "two ways"),
    ],
)
def test_an_expression_that_cannot_be_carried_over_is_named(schedule: str, names: str) -> None:
    """With the field and the reason."""
    assert names in refusal(schedule)


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ("text", "document 1"),
        ([1], "document 1"),
        ({"kind": 7}, "document 1.kind"),
        ({}, "document 1.kind"),
        ({"kind": "CronJob"}, "document 1.metadata"),
        ({"kind": "List", "items": {}}, "document 1.items"),
        ({"kind": "List", "items": ["x"]}, "document 1.items.0"),
        ({"kind": "CronJobList", "items": [{}]}, "document 1.items.0.metadata"),
        ({**job(), "metadata": {"name": ["x"]}}, "document 1.metadata.name"),
        ({**job(), "spec": None}, "document 1.spec"),
        ({**job(), 7: None}, "document 1"),
        (job(schedule=5), "document 1.spec.schedule"),  # pyright: ignore[reportArgumentType]
        (job(startingDeadlineSeconds="600"), "document 1.spec.startingDeadlineSeconds"),
        (job(suspend="true"), "document 1.spec.suspend"),
        (job(concurrencyPolicy="Sometimes"), "document 1.spec.concurrencyPolicy"),
        (job(timeZone=7), "document 1.spec.timeZone"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_shape_is_refused_by_the_name_of_its_field(document: Any, names: str) -> None:
    """Nothing of the file is read any further."""
    with pytest.raises(BadInput) as refused:
        read(document)
    assert str(refused.value.fields["field"]).startswith(names)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(9)
)
MERGING = "a: &a {k0: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{','.join(['*' + chr(97 + n)] * 10)}], k{n + 1}: 1}}\n" for n in range(9)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        MERGING,
        "a: &a [*a]",
        "[" * 100_000,
        "a: " * 50 + "b",
        "!!python/object/apply:os.system ['true']",
        "!!python/name:os.system",
        "a: !custom x",
        "a: 1\na: 2",
        "kind: *nothing",
        "a: [1",
        "\x00",
        "? [1, 2]\n: x",
        "a: 99999-99-99T99:99:99Z",
        "? {a: 1}\n: b",
    ],
    ids=lambda text: repr(text)[:30],
)
def test_hostile_yaml_is_refused(text: str) -> None:
    """Bombs, foreign tags, endless nesting, doubled keys: one sentence that is not long."""
    with pytest.raises(BadInput) as refused:
        for document in read_yaml(text):
            read(document)
    assert len(refused.value.sentence) < 600


ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 10**12, 1.5, "", "*", "@every 1h", "TZ= * * * * *", "\ud800", [], {}, "CronJob"]
    ),
    st.text(max_size=8),
    st.text("0123456789*/,-? LW#", min_size=9, max_size=20),
    st.dates(),
)


@given(st.sampled_from(["kind", "metadata", "name", "namespace", "spec", *job(suspend=True)["spec"], "new"]), ODD)
@settings(max_examples=300, deadline=None)
def test_whatever_stands_anywhere_is_read_or_refused(key: str, value: Any) -> None:
    """One value of a CronJob replaced: a report or BadInput, never anything else."""
    document = job(suspend=True, startingDeadlineSeconds=600, concurrencyPolicy="Allow")
    inside = document if key in document else document["metadata"] if "name" in key else document["spec"]
    inside[key] = value
    try:
        found = read(document)
    except BadInput:
        return
    drafts, rest = drafted(found, "x.yaml", TERMS, datetime(2027, 1, 1, tzinfo=UTC))
    assert len(drafts) + len(rest.refused) + len(found.passed_over) == 1
    assert all(draft.text.encode() for draft in drafts)
