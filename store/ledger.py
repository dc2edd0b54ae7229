"""The ledger, read by people (EVD-1): what rang, what was decided and why, and what became of it. Reads only.

Statements here are built by SQLAlchemy Core from the table definitions, since their filters vary; they are compiled and
handed to the same driver and pool as every decision.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy.dialects import postgresql

from law.errors import UnknownOccurrence
from law.identity import ScheduleName, TriggerOccurrenceId
from law.reasons import MEANINGS, Reason
from store.connection import Connection, Pool, borrow
from store.tables import (
    claim,
    decision,
    delivery,
    effect,
    invocation,
    lease,
    occurrence,
    readiness_request,
    run,
    schedule,
    skipped_range,
)

LIMIT_MAX = 10_000

Line = dict[str, Any]
Query = sa.Select[*tuple[Any, ...]]


def occurrences(
    pool: Pool, name: ScheduleName | None = None, states: Sequence[str] = (), limit: int = 100
) -> list[Line]:
    """The newest Occurrences first, of one Schedule or of all, in the given states or in any."""
    statement = occurrence_lines().order_by(occurrence.c.rang_at.desc(), occurrence.c.source_key.desc())
    if name is not None:
        statement = statement.where(schedule_name() == name)
    if states:
        statement = statement.where(occurrence.c.state.in_(states))
    with borrow(pool) as connection:
        return read(connection, statement.limit(min(limit, LIMIT_MAX)))


def schedule_name() -> sa.ColumnElement[str]:
    """`authority/name`."""
    return schedule.c.authority + "/" + schedule.c.name


def occurrence_lines() -> Query:
    """One line an Occurrence, as the command line's contract names its fields."""
    return (
        sa.select(
            occurrence.c.trigger_occurrence_id,
            schedule_name().label("schedule"),
            occurrence.c.revision,
            occurrence.c.source_key.label("key"),
            occurrence.c.service_class,
            occurrence.c.rang_at,
            occurrence.c.nominal_at,
            occurrence.c.eligible_at,
            occurrence.c.not_before,
            occurrence.c.latest_start_at,
            occurrence.c.finish_by,
            occurrence.c.state,
            sa.func.coalesce(occurrence.c.reason, occurrence.c.waiting_reason).label("reason"),
            occurrence.c.decision_time,
            invocation.c.invocation_id,
            run.c.run_id,
            run.c.state.label("run_state"),
        )
        .join(schedule, schedule.c.schedule_id == occurrence.c.schedule_id)
        .outerjoin(
            invocation,
            (invocation.c.trigger_occurrence_id == occurrence.c.trigger_occurrence_id)
            & (invocation.c.ordinal == newest_ordinal()),
        )
        .outerjoin(run, run.c.invocation_id == invocation.c.invocation_id)
    )


def newest_ordinal() -> sa.ScalarSelect[int]:
    """Of the Invocations of an Occurrence, the one that took it up last (IDN-4)."""
    any_of_them = invocation.alias()
    same = any_of_them.c.trigger_occurrence_id == occurrence.c.trigger_occurrence_id
    return sa.select(sa.func.max(any_of_them.c.ordinal)).where(same).correlate(occurrence).scalar_subquery()


def skipped_ranges(pool: Pool, name: ScheduleName, limit: int = 100) -> list[Line]:
    """The long stretches of a Schedule that were skipped whole, newest first (CAL-8)."""
    statement = (
        sa.select(
            schedule_name().label("schedule"),
            *(column for column in skipped_range.c if column.name not in ("skipped_range_id", "schedule_id")),
        )
        .join(schedule, schedule.c.schedule_id == skipped_range.c.schedule_id)
        .where(schedule_name() == name)
        .order_by(skipped_range.c.first_at.desc())
        .limit(min(limit, LIMIT_MAX))
    )
    with borrow(pool) as connection:
        return read(connection, statement)


def runs(pool: Pool, name: ScheduleName | None = None, states: Sequence[str] = (), limit: int = 100) -> list[Line]:
    """The newest Runs first."""
    statement = (
        sa.select(
            run.c.run_id,
            run.c.invocation_id,
            run.c.trigger_occurrence_id,
            schedule_name().label("schedule"),
            occurrence.c.source_key.label("key"),
            occurrence.c.pattern,
            run.c.state,
            run.c.disposition,
            run.c.reason,
            run.c.enqueue_seq,
            run.c.finish_by,
            run.c.admitted_at,
            run.c.settled_at,
        )
        .join(occurrence, occurrence.c.trigger_occurrence_id == run.c.trigger_occurrence_id)
        .join(schedule, schedule.c.schedule_id == run.c.schedule_id)
        .order_by(run.c.admitted_at.desc(), run.c.run_id)
    )
    if name is not None:
        statement = statement.where(schedule_name() == name)
    if states:
        statement = statement.where(run.c.state.in_(states))
    with borrow(pool) as connection:
        return read(connection, statement.limit(min(limit, LIMIT_MAX)))


def explain(pool: Pool, trigger_occurrence_id: TriggerOccurrenceId) -> Line:
    """Every decision about one Occurrence, in order, with its Run, hops and effects. Raises UnknownOccurrence."""
    with borrow(pool) as connection:
        found = read(connection, the_occurrence(trigger_occurrence_id))
        if not found:
            raise UnknownOccurrence(trigger_occurrence_id=trigger_occurrence_id)
        decisions = read(connection, decisions_about(trigger_occurrence_id))
        admitted = found[0]["run_id"]
        members = read(connection, members_of(trigger_occurrence_id))
        asked = first(read(connection, asked_for(trigger_occurrence_id)))
        return {
            "occurrence": {**found[0], "members": members, "readiness": asked},
            "decisions": [in_words(line) for line in decisions],
            "run": first(read(connection, the_run(admitted))) if admitted else None,
            "hops": read(connection, hops_of(admitted)) if admitted else [],
            "effects": read(connection, effects_of(admitted)) if admitted else [],
        }


def the_occurrence(trigger_occurrence_id: TriggerOccurrenceId) -> Query:
    """The Occurrence's line, with what it is made of. The content itself stays in its row; its digest is shown."""
    made_of = (
        occurrence.c.content_digest,
        occurrence.c.pattern,
        occurrence.c.pattern_revision,
        occurrence.c.pattern_digest,
        occurrence.c.input_digest,
        occurrence.c.owner,
        occurrence.c.origin,
        occurrence.c.origin_principal,
        occurrence.c.requested_class,
        occurrence.c.priority,
        occurrence.c.jitter_milliseconds,
        occurrence.c.zone,
        occurrence.c.civil,
        occurrence.c.fold,
        occurrence.c.civil_kind,
        occurrence.c.found_late,
        occurrence.c.materialized_at,
        occurrence.c.capability,
        occurrence.c.policy_generation,
        occurrence.c.authority_generation,
        occurrence.c.coalesced_into,
        sa.func.coalesce(occurrence.c.merged_input_digest, invocation.c.input_digest).label("merged_input_digest"),
    )
    return occurrence_lines().add_columns(*made_of).where(occurrence.c.trigger_occurrence_id == trigger_occurrence_id)


def decisions_about(trigger_occurrence_id: TriggerOccurrenceId) -> Query:
    """Its decisions, oldest first."""
    return (
        sa.select(
            decision.c.decision_id,
            decision.c.act,
            decision.c.outcome,
            decision.c.reason,
            decision.c.obligations,
            decision.c.evidence,
            decision.c.sampled_at,
            decision.c.run_id,
            decision.c.enqueue_seq,
        )
        .where(decision.c.trigger_occurrence_id == trigger_occurrence_id)
        .order_by(decision.c.decision_seq)
    )


def in_words(line: Line) -> Line:
    """The same decision with its sentence."""
    return {**line, "sentence": MEANINGS[Reason(line["reason"])].sentence}


def the_run(admitted: UUID) -> Query:
    """Its Run, whole, the proof by its digest."""
    return sa.select(*(column for column in run.c if column.name not in ("schedule_id", "proof"))).where(
        run.c.run_id == admitted
    )


def members_of(trigger_occurrence_id: TriggerOccurrenceId) -> Query:
    """The Occurrences that were coalesced into this one, in the order they rang (OVL-5)."""
    return (
        sa.select(
            occurrence.c.trigger_occurrence_id,
            occurrence.c.source_key.label("key"),
            occurrence.c.rang_at,
            occurrence.c.input_digest,
        )
        .where(occurrence.c.coalesced_into == trigger_occurrence_id)
        .order_by(occurrence.c.rang_at, occurrence.c.trigger_occurrence_id)
    )


def asked_for(trigger_occurrence_id: TriggerOccurrenceId) -> Query:
    """The one readiness request that it filed, if it did (YLD-4)."""
    return sa.select(*(column for column in readiness_request.c if column.name != "schedule_id")).where(
        readiness_request.c.trigger_occurrence_id == trigger_occurrence_id
    )


def hops_of(admitted: UUID) -> Query:
    """Its delivery hops, each with the claim that took it and the lease it held."""
    return (
        sa.select(
            delivery.c.enqueue_seq,
            delivery.c.lane,
            delivery.c.state,
            delivery.c.created_at,
            delivery.c.published_at,
            delivery.c.publish_count,
            claim.c.claim_id,
            claim.c.worker,
            claim.c.claimed_at,
            claim.c.heartbeat_at,
            claim.c.ending,
            claim.c.note,
            claim.c.ended_at,
            lease.c.capability,
            lease.c.units,
            lease.c.granted_at,
            lease.c.released_at,
        )
        .outerjoin(claim, (claim.c.run_id == delivery.c.run_id) & (claim.c.enqueue_seq == delivery.c.enqueue_seq))
        .outerjoin(lease, (lease.c.run_id == delivery.c.run_id) & (lease.c.enqueue_seq == delivery.c.enqueue_seq))
        .where(delivery.c.run_id == admitted)
        .order_by(delivery.c.enqueue_seq)
    )


def effects_of(admitted: UUID) -> Query:
    """Its effects in the order they were begun."""
    return (
        sa.select(*(column for column in effect.c if column.name != "run_id"))
        .where(effect.c.run_id == admitted)
        .order_by(effect.c.admitted_at, effect.c.station_attempt_id)
    )


def read(connection: Connection, statement: Query) -> list[Line]:
    """Compile for PostgreSQL and run on the pool's own connection."""
    compiled = statement.compile(dialect=DIALECT, compile_kwargs={"render_postcompile": True})
    cursor = connection.cursor(row_factory=dict_row)
    return cursor.execute(compiled.string.encode(), compiled.params).fetchall()


def first(lines: Iterable[Line]) -> Line | None:
    """The only line, or None."""
    return next(iter(lines), None)


DIALECT = postgresql.dialect(paramstyle="pyformat")
"""psycopg's own parameter style."""
