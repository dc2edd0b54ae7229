"""Coalescing (OVL-5, OVL-6): firings that waited for the same Schedule become one Invocation, by their Pattern's own merge.

Nothing is merged that differs in what it may do: Pattern revision, owner, authority generation, policy, budget and label are
compared first, and the difference is named. Inputs are merged as the Pattern declares, typed on both sides and pure; what it
cannot merge is a difference of inputs. Every member keeps its own row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from law.identity import Digest, digest_of
from law.pattern import CannotMerge, Pattern
from law.reasons import Reason

Json = dict[str, Any]
Merge = Callable[["Mergeable", Sequence[Mapping[str, Any]]], "Json | Unmergeable"]
"""(whose Pattern, inputs in the order they rang) → the merged input, or why there is none."""


@dataclass(frozen=True, slots=True)
class Unmergeable:
    """Why inputs were not merged. `for_now`: nobody here can merge them, and somebody else may."""

    reason: str
    for_now: bool = False


@dataclass(frozen=True, slots=True)
class Mergeable:
    """What has to be equal before inputs are merged, and the input itself."""

    pattern: str
    pattern_revision: str
    pattern_digest: str
    owner: str
    authority_generation: int
    policy: str
    """The pinned class, overlap, catch-up and finish terms, and the generation of policy that granted the class."""
    budget: str
    label: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """One input for several Occurrences, and its digest."""

    input: Json
    input_digest: Digest


def difference(head: Mergeable, member: Mergeable) -> Reason | None:
    """The first thing in which they differ so that they may not become one; None where there is none (OVL-6)."""
    compared = (
        (Reason.COALESCE_PATTERN_REVISION, "pattern", "pattern_revision", "pattern_digest"),
        (Reason.COALESCE_OWNER, "owner"),
        (Reason.COALESCE_AUTHORITY_GENERATION, "authority_generation"),
        (Reason.COALESCE_POLICY, "policy"),
        (Reason.COALESCE_BUDGET, "budget"),
        (Reason.COALESCE_LABEL, "label"),
    )
    for reason, *names in compared:
        if any(getattr(head, name) != getattr(member, name) for name in names):
            return reason
    return None


def merge_with(patterns: Mapping[tuple[str, str], Pattern[Any]]) -> Merge:
    """The merge of installed Patterns: inputs in and out are checked against the Pattern's own model."""

    def merge(whose: Mergeable, inputs: Sequence[Mapping[str, Any]]) -> Json | Unmergeable:
        pattern = patterns.get((whose.pattern, whose.pattern_revision))
        if pattern is None or pattern.digest != whose.pattern_digest:
            return Unmergeable(f"{whose.pattern} {whose.pattern_revision} of the pinned digest is not here", True)
        if pattern.merge is None:
            return Unmergeable(f"{whose.pattern} {whose.pattern_revision} declares no merge")
        return merged_by(pattern, inputs)

    return merge


def merged_by(pattern: Pattern[Any], inputs: Sequence[Mapping[str, Any]]) -> Json | Unmergeable:
    """Ask one Pattern. A merge that fails has merged nothing."""
    assert pattern.merge is not None
    try:
        typed = [pattern.input_model.model_validate(one) for one in inputs]
        merged = pattern.input_model.model_validate(pattern.merge(typed))
        return merged.model_dump(mode="json", by_alias=True)
    except CannotMerge as problem:
        return Unmergeable(problem.reason)
    except ValidationError as problem:
        fields = ", ".join(".".join(map(str, error["loc"])) or "input" for error in problem.errors())
        return Unmergeable(f"an input, or what became of them, does not fit the Pattern: {fields}")
    except Exception as problem:  # a merge that raises has merged nothing, and its own words say why
        return Unmergeable(f"{type(problem).__name__}: {problem}")


def no_merge(whose: Mergeable, inputs: Sequence[Mapping[str, Any]]) -> Json | Unmergeable:
    """Where no Pattern is installed, everything waits for somebody who has them."""
    del inputs
    return Unmergeable(f"no Pattern is installed where this was decided, so not {whose.pattern}", True)


def sealed(merged: Json) -> Merged:
    """The merged input with its digest."""
    return Merged(merged, digest_of(merged, "merged input"))
