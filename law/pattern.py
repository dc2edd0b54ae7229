"""The Pattern contract: what may be carried, and what it may ask of the office while it is carried.

A Pattern is an exact executable score: key, revision, digest. Its code sees one `Casting`, the narrow window through
which it acts (FIN-2, IDN-2, IDN-3): an effect is admitted in a transaction before it begins and its result is recorded
after; a checkpoint is durable before the worker is released; an ending is a report that the settle transaction judges,
and proves nothing by itself (FIN-1).

Pure: the contract, no implementation. `nightbell/wiring.py` joins a Pattern to its Casting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

InputT = TypeVar("InputT", bound=BaseModel)
Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of the same."""


class EffectRefused(Exception):
    """The office did not admit this effect: {reason}. Let it pass through: the hop is over."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the effect was not admitted: {reason}")


class ConsentDenied(Exception):
    """Somebody was asked for consent and said no: {note}. Whoever lets it pass through has failed, with that note."""

    def __init__(self, key: str, note: str) -> None:
        self.key = key
        self.note = note
        super().__init__(f"consent to {key!r} was denied{f': {note}' if note else ''}")


class Awaits(Exception):
    """The hop is over: its Run waits for somebody, and returns as a new hop when they have answered. Let it pass through."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"waits for the answer to {key!r}")


class DidNotHappen(Exception):
    """Raised by an effect's own code when it can prove that nothing happened; any other exception leaves it unknown."""


class CannotMerge(Exception):
    """Raised by a Pattern's merge for inputs that do not belong together: {reason}."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class YieldContract:
    """What a Pattern promises of each of its slices (YLD-1): inside `max_slice` it reaches a checkpoint or its end, has
    released every lease, has settled every begun effect, and can be resumed by another hop. It counts once it is proven."""

    max_slice: timedelta
    checkpoint: bool = True
    release: bool = True
    contain: bool = True
    resume: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all four are promised; less is no contract."""
        return self.checkpoint and self.release and self.contain and self.resume and self.max_slice > timedelta(0)


@dataclass(frozen=True, slots=True)
class Workplace:
    """What stands around a Pattern: folders as text, and the servers it may use. Never persisted, never in a history."""

    files_folder: str
    """The folder under the home in which Patterns keep their files."""
    postgres_tools_folder: str
    """The folder of `pg_dump` and its kin."""
    database_url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lease:
    """So many units of a capability, held by this hop."""

    capability: str
    units: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody answered, and when; `content` of a delegate's answer, empty for a consent."""

    answered_by: str
    answered_at: datetime
    note: str = ""
    content: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Proof:
    """What is claimed to be finished: a declared kind and its content, judged by the settle transaction (FIN-1)."""

    kind: str
    content: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Done:
    """The work is complete; `proof` where the revision requires one."""

    proof: Proof | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Yielded:
    """One slice is done and checkpointed; the rest may be offered as a new fenced hop (YLD-5, IDN-3)."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The work cannot be done, and says why."""

    note: str


Ending = Done | Yielded | Failed


class Casting(Protocol):
    """One hop of one Run, as its Pattern sees it."""

    @property
    def schedule(self) -> str: ...

    @property
    def run_id(self) -> str: ...

    @property
    def trigger_occurrence_id(self) -> str: ...

    @property
    def nominal_civil(self) -> str:
        """The civil time that rang, as ISO 8601 text; empty for an external event."""
        ...

    @property
    def workplace(self) -> Workplace: ...

    @property
    def checkpoint_state(self) -> Mapping[str, Json] | None:
        """The last durable checkpoint of this Invocation, from an earlier hop; None where there is none."""
        ...

    @property
    def finish_by(self) -> datetime | None:
        """The instant before which the work has to be finished; from then on no effect begins. None where there is none."""
        ...

    @property
    def lease(self) -> Lease | None:
        """What this hop holds of a capability; released when the hop ends. None for work that needs none."""
        ...

    @property
    def budget(self) -> Mapping[str, float]:
        """What this Run may still spend, unit by unit, of what its admission reserved (AUT-4)."""
        ...

    def effect(
        self,
        kind: str,
        key: str,
        act: Callable[[], Mapping[str, Json]],
        *,
        consent: str = "",
        cost: Mapping[str, float] | None = None,
    ) -> Mapping[str, Json]:
        """Admit, perform and record one effect; an effect that already succeeded in this Invocation is answered from
        its record and not performed again.

        `kind` and `key` name the effect within its Run. `consent`: the key of the consent without which it may not begin;
        `cost`: what it spends of the Run's budget, in its units. Raises EffectRefused when the office does not admit it, and
        whatever `act` raised (then the effect is recorded `failed` after DidNotHappen, otherwise `unknown`).
        """
        ...

    def await_consent(self, key: str, question: str) -> Answer:
        """The consent named `key` within this Run, if it was given. Raises Awaits where it was not asked or answered yet:
        then this hop is over, and the Run returns with the answer; raises ConsentDenied where the answer was no."""
        ...

    def delegate(self, key: str, to: str, request: Mapping[str, Json]) -> Answer:
        """What a delegate answered to `request`. Raises Awaits until it has."""
        ...

    def checkpoint(self, state: Mapping[str, Json]) -> None:
        """Make `state` (JSON) the point to which this Invocation may return (IDN-3)."""
        ...


@dataclass(frozen=True, slots=True)
class Pattern(Generic[InputT]):
    """One executable score and the promises it makes about itself."""

    key: str
    revision: str
    input_model: type[InputT]
    perform: Callable[[Casting, InputT], Ending]
    digest: str
    """`sha256:` of the source that performs: a changed source is another digest, whatever its revision says."""
    checkpoint_schema: str = ""
    """Which shape its checkpoints have; one of another shape is stale, and fails the Run plainly."""
    recovers: bool = False
    """Whether a Run that failed or was cancelled may be taken up again by a new Invocation (IDN-4): whatever its effects did
    can be done again, or be seen to have been done."""
    returns_to_checkpoint: bool = False
    """Whether a hop that was lost with no effect in doubt may lawfully return to its last checkpoint, or its start."""
    finish_proofs: Mapping[str, Callable[[Mapping[str, Json]], str]] = field(default_factory=dict[str, Any])
    """Proof kind → validator over the proof's content, pure: empty text when valid, else what is wrong with it."""
    merge: Callable[[Sequence[InputT]], InputT] | None = None
    """How inputs of waiting Occurrences become one (OVL-5): pure, in the order they rang; None where they cannot be merged.
    Raises CannotMerge for inputs that do not belong together."""
    yields: YieldContract | None = None
    """What it promises of its slices; None for work that cannot be preempted (YLD-2)."""
