"""The tables, as the ledger's readers and the migration test see them; `migrations/` is what made them.

Illegal states are refused here too, not only by code. The constraints that carry a promise:

- one row per source firing of a Schedule, under an id computed from both            `occurrence` unique key (OCC-1)
- no window columns unless `deadline_windowed`                                       `occurrence_window_law` (OCC-8)
- the assigned revision, bounds, jitter and identity never change; final is final    trigger `occurrence_is_pinned` (OCC-2, CAL-9)
- one admission Invocation per Occurrence, one live Run per Schedule under `forbid`  unique indexes (OCC-6, OVL-2)
- one open claim per Run; a settled Run never changes                                unique index, trigger (IDN-2, FIN-4)
- a lease ends with its hop; what is held never exceeds what there is               triggers of `lease` and `run`
- an Occurrence that was coalesced names the one that stands for it, and the input  `occurrence_coalesced_law` (OVL-5)
- decisions, rounds, revisions, rules and activations are append-only                trigger `append_only` (EVD-1, CAL-4)

A CHECK that yields NULL passes, so every CHECK below is written to be true or false.
"""

from store.tables.base import SCHEMA, metadata
from store.tables.capacity import capability, lease, quiet_window, readiness_request, slice_
from store.tables.carried import awaited, checkpoint, claim, delivery, effect, invocation, run
from store.tables.intent import (
    activation,
    cutover_exclusion,
    origin_policy,
    pattern_revision,
    pause_event,
    principal,
    schedule,
    schedule_revision,
    segment,
    zone_rules,
)
from store.tables.ringing import decision, occurrence, round_, skipped_range
from store.tables.ward import budget, budget_use, sigil

__all__ = [
    "SCHEMA",
    "activation",
    "awaited",
    "budget",
    "budget_use",
    "capability",
    "checkpoint",
    "claim",
    "cutover_exclusion",
    "decision",
    "delivery",
    "effect",
    "invocation",
    "lease",
    "metadata",
    "occurrence",
    "origin_policy",
    "pattern_revision",
    "pause_event",
    "principal",
    "quiet_window",
    "readiness_request",
    "round_",
    "run",
    "schedule",
    "schedule_revision",
    "segment",
    "sigil",
    "skipped_range",
    "slice_",
    "zone_rules",
]
