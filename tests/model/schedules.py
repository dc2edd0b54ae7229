"""Schedules of every policy and class, and capabilities in every state, as the machine draws them."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.model.reference import Iron, Score
from tests.office import document

MINUTES = {count: timedelta(minutes=count) for count in (1, 4, 5, 8, 12, 20, 30, 45)}

policies = st.sampled_from(["forbid", "serialize", "bounded_parallel", "coalesce"])
classes = st.sampled_from(["foreground", "foreground", "deadline_windowed", "deadline_windowed", "spare_capacity"])
irons = st.builds(
    Iron,
    state=st.sampled_from(["WARM"] * 20 + ["COLD", "CONVERGING", "UNKNOWN"]),
    admission=st.sampled_from(["open"] * 20 + ["closed"]),
    units=st.integers(2, 3),
    protected=st.integers(0, 1),
    kept_for_foreground=st.integers(0, 1),
    exclusive=st.sampled_from([False, False, False, True]),
)


@st.composite
def scores(draw: st.DrawFn, name: str) -> Score:
    """A Schedule of any kind that a file may describe."""
    policy, service_class = draw(policies), draw(classes)
    windowed = service_class == "deadline_windowed"
    iron = draw(st.sampled_from([None, "iron", "iron"]))
    finish = draw(st.sampled_from([None, 8, 20, 45])) if windowed else None
    is_known = draw(st.sampled_from([True, True, False])) and (iron or finish)
    yields = policy == "coalesce" or service_class == "spare_capacity" or draw(st.booleans())
    bounded = policy == "bounded_parallel"
    return Score(
        name=name,
        policy=policy,
        parallel=draw(st.integers(1, 3)) if bounded else 1,
        units_max=draw(st.sampled_from([None, 3])) if bounded else None,
        service_class=service_class,
        priority=draw(st.sampled_from([40, 50, 60])),
        capability=iron,
        units=draw(st.integers(1, 2)) if iron else 1,
        estimate=MINUTES[draw(st.sampled_from([1, 5, 12]))] if is_known else None,
        allowed_delay=MINUTES[draw(st.sampled_from([4, 12, 30]))] if windowed else None,
        finish_within=MINUTES[finish] if finish else None,
        every=draw(st.sampled_from([None, None, None, MINUTES[30]])),
        owner=draw(
            st.sampled_from(["magus", "adept"] if policy == "coalesce" else ["magus", "magus", "magus", "adept"])
        ),
        pattern="embedding_backfill" if yields else "bridge_turn",
    )


def as_document(score: Score) -> Any:
    """Its file."""
    said = score.estimate or timedelta(minutes=5)
    estimate = {"duration": said, "provenance": "declared", "confidence": 0.9 if score.estimate else 0.3}
    capacity_table: dict[str, Any] | None = {"estimate": estimate}
    if score.capability is not None:
        capacity_table = {"capability": score.capability, "units": score.units, "estimate": estimate}
    elif score.finish_within is None:
        capacity_table = None
    bounded = {"max": score.parallel, "max_units": score.units_max} if score.policy == "bounded_parallel" else {}
    external = {"kind": "external", "source": "bridge"}
    window = {"allowed_delay": score.allowed_delay, "finish_within": score.finish_within}
    revision = "2" if score.pattern == "embedding_backfill" else "1"
    return document(
        {"authority": "home", "name": score.name},
        trigger={"kind": "calendar", "cron": "*/30 * * * *", "zone": "UTC"} if score.every else external,
        class_={"service_class": score.service_class, "priority": score.priority},
        window=window if score.allowed_delay else None,
        overlap={"policy": score.policy, **bounded},
        work={"pattern": score.pattern, "pattern_revision": revision, "owner": score.owner},
        capacity=capacity_table,
    )
