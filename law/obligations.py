"""What this software promises, by number: the list that tests, error messages and the receipt cite (EVD-2).

A number never changes its meaning, and none is taken off the list because it is inconvenient: what no test shows yet is
said to be not proven. Each is kept at three boundaries: its ordinary case, its failure, and a restart between two commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from law.errors import BadInput

BOUNDARIES = ("ordinary", "failure", "restart")

GROUPS = {
    "CAL": "The calendar",
    "OCC": "One firing, one Occurrence",
    "CUT": "Changing a revision",
    "WIN": "The admission window",
    "FIN": "Finishing",
    "OVL": "Overlap",
    "CLS": "Class and origin",
    "SEL": "Selection",
    "YLD": "Spare capacity",
    "AUT": "Authority",
    "IDN": "Delivery and recovery",
    "EVD": "Evidence",
}

SENTENCES = {
    "CAL-1": "A calendar names its zone; neither the host's zone nor its zone files are ever looked at.",
    "CAL-2": "A civil time that comes twice rings at the earlier, the later or both, as pinned.",
    "CAL-3": "A civil time that never comes is skipped, advanced or failed, as pinned, and always recorded.",
    "CAL-4": "A revision rings by the zone rules it retains; rules that are gone or altered stop it, and nothing replaces them.",
    "CAL-5": "Nothing older than the pinned horizon is considered after an outage; it is recorded as skipped.",
    "CAL-6": "Jitter is chosen once, within its bound, stored, and no part of what a firing is called.",
    "CAL-7": "The latest start follows from the nominal firing, by elapsed time or by the clock on the wall there.",
    "CAL-8": "Catching up is bounded, and a decade of missed firings is recorded in little space and time.",
    "CAL-9": "What was worked out for a firing is the same after every restart.",
    "OCC-1": "An Occurrence is found by its Schedule and firing, before any revision is asked.",
    "OCC-2": "A firing belongs to one revision, once, whoever brings it again and whenever.",
    "OCC-3": "Jitter, equal inputs, repeated deliveries and delays make no new firing.",
    "OCC-4": "The same firing with the same content is answered with its Occurrence; other content is refused by both digests.",
    "OCC-5": "An event belongs to the revision that was active when it was first committed.",
    "OCC-6": "Killed before admission or after it, the same Occurrence, work and delivery are carried on.",
    "OCC-7": "The ids of Occurrences and of attempts are different types, and nothing joins them.",
    "OCC-8": "Work without a window has no window columns, and the database insists.",
    "CUT-1": "A change of revision divides all firings that are open: disjointly, completely and recoverably.",
    "CUT-2": "A change of calendar says which firings are the same, which are new and which are let go.",
    "CUT-3": "A division that is not whole, or would move a firing, is refused with each firing named.",
    "CUT-4": "Old and new relays find the same owner of a firing, also long after the change.",
    "CUT-5": "The night between 02:00 Bratislava and 02:00 UTC goes as it was written down.",
    "WIN-1": "Work is admitted from its eligibility until before its bound; at the bound it is late.",
    "WIN-2": "The time of a decision is sampled from one trusted clock, after the lock is held.",
    "WIN-3": "A decision whose transaction did not commit was never made.",
    "WIN-4": "A lost answer is read from the record, and nothing is decided again.",
    "WIN-5": "What was not admitted by its bound is recorded as missed, and is never started late.",
    "WIN-6": "What is not yet eligible waits as a row, and keeps no worker asleep.",
    "WIN-7": "A restart or a corrected clock looks again at what is undecided, and reopens nothing.",
    "WIN-8": "Work admitted in time may begin later; only its finish bound still bars new effects.",
    "FIN-1": "A timely finish is a valid proof, accepted before the bound, in one commit with the end of the Run.",
    "FIN-2": "From the finish bound on no new effect begins, and each effect checks that itself.",
    "FIN-3": "An expiry that is committed rules out a timely finish, and ends nothing by itself.",
    "FIN-4": "Effects that had begun keep their results; a late one settles what is owed and is no success in time.",
    "FIN-5": "A finish bound that has passed makes nothing safe to kill that was not.",
    "FIN-6": "Without a finish bound nothing is promised about finishing, and nothing claims it.",
    "OVL-1": "Any earlier work of the Schedule that has not ended overlaps, whatever became of its worker.",
    "OVL-2": "Where overlap is forbidden, the new Occurrence is kept and its suppression is recorded.",
    "OVL-3": "Where work is serialized, each waits for the one before, inside its own window.",
    "OVL-4": "Where parallel work is bounded, it is admitted up to its ceilings and not beyond.",
    "OVL-5": "Where Occurrences merge, the Pattern does it, and every member stays with what it went into.",
    "OVL-6": "What differs in authority, policy, budget, label or input is not merged, and the difference is named.",
    "OVL-7": "Catching up after a restart obeys the same overlap policy.",
    "CLS-1": "Where a request came from is kept on the Occurrence, and is no class of service.",
    "CLS-2": "Policy may lower or refuse a class, on the record; nobody raises their own.",
    "CLS-3": "A class is no queue: the lane is chosen at delivery, and any class may take any lane.",
    "SEL-1": "What is invalid, revoked, doubled or expired is taken out first, each with its reason.",
    "SEL-2": "Feasible deadlines go before foreground work, that before other windows, and spare work last.",
    "SEL-3": "Priority and age order work inside its class, and widen no limit.",
    "SEL-4": "An estimate counts only with its source and confidence; the unknown is no success.",
    "SEL-5": "Under overload work is refused or missed openly; what cannot meet its bound is not admitted.",
    "SEL-6": "The same candidates, capacity and instant give the same answer.",
    "YLD-1": "A slice counts as yielding only where the Pattern can stop, release, settle and resume inside it.",
    "YLD-2": "Other spare work touches scarce hardware only in a quiet window that an operator approved.",
    "YLD-3": "Spare work uses what is warm and unclaimed, and causes no swap.",
    "YLD-4": "Windowed work may ask for readiness within its declared budget, and moves no deadline.",
    "YLD-5": "A backfill runs one bounded shard, lets go, and offers the next only while there is room.",
    "AUT-1": "Owner, Sigil, Pattern, input, budget and consent are judged anew in each transaction that acts.",
    "AUT-2": "A revocation invalidates the pending work it touches, with the reason.",
    "AUT-3": "Priority, lateness and catching up revive no credential and pass no Ward.",
    "AUT-4": "Budgets are ceilings, reserved where work is admitted, and never widened.",
    "IDN-1": "Invocation, Run and first delivery are one commit; a lost publication repeats the same delivery.",
    "IDN-2": "A claim is fenced: stale and doubled deliveries do nothing.",
    "IDN-3": "A return from a checkpoint is the same work under a new fence.",
    "IDN-4": "To try ended work again is new, related work, and only where the Pattern permits it.",
    "IDN-5": "An effect whose outcome is unknown is held for the operator and not repeated.",
    "IDN-6": "Readiness cutoffs and coalesced followers of the Orchestrator stay as they are.",
    "EVD-1": "Every decision is kept, with its law, sample and evidence, and can be explained.",
    "EVD-2": "The receipt shows every obligation at its boundaries, and lists what is not proven as not proven.",
}


@dataclass(frozen=True, slots=True)
class Obligation:
    """One promise: its number and one sentence about it."""

    covenant_id: str
    sentence: str

    @property
    def group(self) -> str:
        """`WIN` of `WIN-1`."""
        return self.covenant_id.partition("-")[0]


COVENANT = tuple(Obligation(covenant_id, sentence) for covenant_id, sentence in SENTENCES.items())
"""Every obligation, in the covenant's order."""


def chosen(names: Sequence[str]) -> tuple[Obligation, ...]:
    """The obligations of these groups (`WIN`) and numbers (`WIN-1`), in the covenant's order; all where there are no
    names. Raises BadInput about a name that is neither."""
    wanted = {name.strip().upper() for name in names}
    for name in names:
        if name.strip().upper() not in {*GROUPS, *SENTENCES}:
            raise BadInput(
                field="only", reason=f"{name!r} is neither a group ({', '.join(GROUPS)}) nor a number (WIN-1)"
            )
    return tuple(one for one in COVENANT if not wanted or one.group in wanted or one.covenant_id in wanted)
