"""Kubernetes CronJobs: manifests and what `kubectl get cronjobs -o yaml` prints, a List included.

The expression is read as Kubernetes reads it (the robfig library) and is spelled so that it means the same here: `?` is `*`,
and a day field with a step and a star joins the other by OR there. When the clocks change, a time that does not come is
skipped there and one that comes twice rings twice; both are said in the trigger. A deadline is a window; a CronJob without
one may start however late, which here is `foreground`, the class that has no latest start.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from law.cron import ALIASES, parse_cron
from law.errors import BadInput
from law.schedule import bad_input
from nightbell.importing.entries import Entry, Found, Loss, Refused, gathered, slug
from store.zone_rules import installed_rules

ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S*)\s+(.*)", re.DOTALL)
STEPPED_STAR = re.compile(r"[*?]/0*([2-9]|[1-9]\d+)")
DAYS_FIELD, WEEKDAYS_FIELD = 2, 4
SPANS = {DAYS_FIELD: "1-31", WEEKDAYS_FIELD: "0-6"}
LISTS = ("List", "CronJobList")

PODS = Loss(
    "the jobTemplates",
    "a Schedule rings an installed Pattern and never starts a Pod",
    "each file rings the Pattern that was named",
)
NO_DEADLINE = Loss(
    "a start however late, the newest missed one alone",
    "a late start needs a horizon here",
    "the newest missed firing starts within a day (catch_up.horizon), as foreground work, which has no latest start",
)
HISTORY = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")


class Shape(BaseModel):
    """A part of a manifest: types are exact, and what is not ours to read is kept aside."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class Metadata(Shape):
    """What names a CronJob."""

    name: str = Field(min_length=1, max_length=253)
    namespace: str = Field(default="", max_length=253)


class Spec(Shape):
    """What of a CronJob is a Schedule's, spelled as Kubernetes spells it."""

    schedule: str = Field(max_length=512)
    time_zone: str | None = Field(default=None, alias="timeZone")
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = Field(default="Allow", alias="concurrencyPolicy")
    starting_deadline_seconds: int | None = Field(default=None, alias="startingDeadlineSeconds")
    suspend: bool | None = None
    job_template: Any = Field(default=None, alias="jobTemplate")


class CronJob(Shape):
    """One CronJob."""

    metadata: Metadata
    spec: Spec


@dataclass(frozen=True, slots=True)
class Job:
    """A CronJob and where it stands in the file."""

    where: str
    job: CronJob


def read_cronjobs(documents: list[Any], zone: str | None, parallel_max: int) -> Found:
    """Read the documents of a manifest. `zone` is the cluster's, for jobs that name none. Raises BadInput for a document
    or a CronJob that is malformed, UnknownZone for a zone that is none."""
    if zone is not None:
        installed_rules(zone)
    jobs, passed_over = find_jobs(documents)
    return gathered(read_jobs(jobs, zone, parallel_max), passed_over)


def read_jobs(jobs: list[Job], zone: str | None, parallel_max: int) -> Iterator[Entry | Refused | Loss]:
    """What becomes of each."""
    if jobs:
        yield PODS
    for one in jobs:
        try:
            yield read_job(one, zone, parallel_max)
        except BadInput as problem:
            yield Refused(f"{one.where}: {one.job.spec.schedule}", problem.sentence)


def find_jobs(documents: list[Any]) -> tuple[list[Job], list[str]]:
    """The CronJobs, and what else there is."""
    jobs, passed_over = list[Job](), list[str]()
    for field, document in items(documents):
        if not isinstance(document, Mapping):
            raise BadInput(field=field, reason="is not a Kubernetes object")
        kind = document.get("kind")
        if not isinstance(kind, str):
            raise BadInput(field=f"{field}.kind", reason="says no kind")
        if kind != "CronJob":
            passed_over.append(f"{field}, a {kind}")
            continue
        job = checked(field, document)
        jobs.append(Job(f"CronJob {qualified(job.metadata)}", job))
    return jobs, passed_over


def items(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    """Every object with its place; a List holds more of them, and no further List."""
    for number, document in enumerate(documents, 1):
        field = f"document {number}"
        if not isinstance(document, Mapping) or document.get("kind") not in LISTS:
            yield field, document
            continue
        inside = document.get("items")
        if not isinstance(inside, list):
            raise BadInput(field=f"{field}.items", reason="is not a list")
        for place, one in enumerate(inside):
            kind = {"kind": "CronJob"} if document["kind"] == "CronJobList" else {}
            yield f"{field}.items.{place}", {**kind, **one} if isinstance(one, Mapping) else one


def checked(field: str, document: Mapping[Any, Any]) -> CronJob:
    """One CronJob by its shape. Raises BadInput naming the field."""
    try:
        return CronJob.model_validate(document)
    except ValidationError as problem:
        found = bad_input(problem)
        raise BadInput(field=f"{field}.{found.fields['field']}", reason=found.fields["reason"]) from problem


def qualified(metadata: Metadata) -> str:
    """`namespace/name`."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def read_job(one: Job, cluster_zone: str | None, parallel_max: int) -> Entry:
    """One CronJob as a Schedule. Raises BadInput with the reason why it cannot be one."""
    spec = one.job.spec
    expression, zone = split_zone(spec, cluster_zone)
    losses: list[Loss] = []
    tables: dict[str, Any] = {
        "trigger": {"kind": "calendar", "cron": same_meaning(expression), "zone": zone, "fold": "both", "gap": "skip"}
    }
    tables |= tempo(spec.starting_deadline_seconds, losses)
    tables["overlap"] = overlap(spec.concurrency_policy, parallel_max, losses)
    losses += unread(spec)
    name = slug(one.job.metadata.name, "cronjob")
    return Entry(one.where, tuple(original(one.job)), name, tables, tuple(losses))


def split_zone(spec: Spec, cluster_zone: str | None) -> tuple[str, str]:
    """The expression without a zone before it, and the zone."""
    expression, written = spec.schedule.strip(), spec.time_zone
    if prefix := ZONE_PREFIX.fullmatch(expression):
        if written is not None:
            raise BadInput(field="spec.timeZone", reason="and a zone inside the schedule: Kubernetes refuses both")
        written, expression = prefix[1], prefix[2].strip()
    zone = written if written is not None else cluster_zone
    if zone is None:
        reason = "is absent, so it rings by the clocks of the cluster's controller, which no manifest says; give --zone"
        raise BadInput(field="spec.timeZone", reason=reason)
    installed_rules(zone)
    return expression, zone


def same_meaning(expression: str) -> str:
    """The expression spelled so that it means here what it means in Kubernetes. Raises BadInput where nothing does."""
    if expression.startswith("@every"):
        reason = "@every counts from the last run, which is no civil time; write a cron expression"
        raise BadInput(field="spec.schedule", reason=reason)
    if expression.startswith("@"):
        return expression if expression in ALIASES else parse_cron(expression, "spec.schedule").expression
    fields = expression.split()
    if len(fields) != WEEKDAYS_FIELD + 1:
        raise BadInput(field="spec.schedule", reason=f"{expression!r} does not have five fields")
    fields = ["*" if {"*", "?"} & set(one.split(",")) else one.replace("?", "*") for one in fields]
    if "*" not in (fields[DAYS_FIELD], fields[WEEKDAYS_FIELD]):
        for position, span in SPANS.items():
            fields[position] = STEPPED_STAR.sub(rf"{span}/\1", fields[position])
    spelled = " ".join(fields)
    parse_cron(spelled, "spec.schedule")
    return spelled


def tempo(deadline_seconds: int | None, losses: list[Loss]) -> dict[str, Any]:
    """The class, and its window where there is a deadline."""
    if deadline_seconds is None:
        losses.append(NO_DEADLINE)
        return {"class": {"service_class": "foreground"}}
    if deadline_seconds < 1:
        reason = f"{deadline_seconds} leaves no instant at which it could start"
        raise BadInput(field="spec.startingDeadlineSeconds", reason=reason)
    return {"class": {"service_class": "deadline_windowed"}, "window": {"allowed_delay": f"{deadline_seconds}s"}}


def overlap(policy: str, parallel_max: int, losses: list[Loss]) -> dict[str, Any]:
    """What meets earlier work that has not ended."""
    if policy == "Allow":
        because = "Kubernetes starts one job beside another without any bound"
        losses.append(Loss("concurrencyPolicy: Allow", because, f"at most {parallel_max} at once"))
        return {"policy": "bounded_parallel", "max": parallel_max}
    if policy == "Replace":
        because = "work that was admitted is never cut off for the next of its kind"
        losses.append(Loss("concurrencyPolicy: Replace", because, "the later firing is suppressed (forbid)"))
    return {"policy": "forbid"}


def unread(spec: Spec) -> Iterator[Loss]:
    """What else the spec says."""
    if spec.suspend:
        because = "a file cannot be paused, only a Schedule can"
        yield Loss("suspend: true", because, "leave the file unapplied, or pause the Schedule as soon as it is applied")
    for name in sorted(spec.model_extra or {}):
        if name in HISTORY:
            yield Loss(name, "the ledger keeps every Occurrence and Run", "nothing is forgotten")
        else:
            yield Loss(f"spec.{name}"[:80], "no Schedule has anything like it", "it is left out")


def original(job: CronJob) -> Iterator[str]:
    """The fields that were read, as they were spelled."""
    said = job.spec.model_dump(by_alias=True, exclude_none=True, include=set(Spec.model_fields) - {"job_template"})
    for name, value in said.items():
        if name != "concurrencyPolicy" or "concurrency_policy" in job.spec.model_fields_set:
            yield f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
