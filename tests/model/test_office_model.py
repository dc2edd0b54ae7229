"""Ten thousand random steps: the store and the model office are asked the same, and stand the same after every step."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from nightbell.postgres_server import PostgresServer
from tests.model.office_machine import OfficeMachine

STEPS_AN_EXAMPLE = 100
PINNED_STEPS = 10_000
TO_BE_MET = {
    *(f"pending: {reason}" for reason in ("capacity", "overlap", "paused", "quiet_window", "readiness")),
    "pending: not_yet_eligible",
    "admitted: admitted",
    "coalesced: coalesced",
    "refused: coalesce_input",
    "refused: infeasible",
    "missed: latest_start_passed",
    "missed: finish_bound_passed",
    "suppressed: overlap_forbidden",
    "revoked: owner_revoked",
    "skipped: not_newest",
    *("done", "failed", "cancelled", "cancelled while it worked", "contained", "parked consent", "parked hardware"),
    *("resumed", "proven", "protected", "kept for a deadline"),
}
"""What so long a walk has to have met; one that has not tests less than it says."""


@pytest.mark.timeout(600)
@pytest.mark.obligation("OVL-3", boundary="restart")
@pytest.mark.obligation("OVL-4", boundary="restart")
@pytest.mark.obligation("SEL-2", boundary="restart")
@pytest.mark.obligation("SEL-6", boundary="restart")
@pytest.mark.obligation("WIN-3", boundary="restart")
def test_the_store_and_its_model_never_differ(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> None:
    """As many random steps as `--model-steps` says, a fresh database every hundred."""
    wanted = int(request.config.getoption("--model-steps") or 0)
    OfficeMachine.server, OfficeMachine.steps = postgres_server, 0
    OfficeMachine.met.clear()
    run_state_machine_as_test(
        OfficeMachine,
        settings=settings(
            max_examples=2 + wanted * 11 // (10 * STEPS_AN_EXAMPLE),
            stateful_step_count=STEPS_AN_EXAMPLE,
            deadline=None,
            database=None,
            derandomize=not request.config.getoption("--model-random"),
            phases=[Phase.generate, Phase.shrink] if request.config.getoption("--model-shrink") else [Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            print_blob=True,
        ),
    )
    assert OfficeMachine.steps >= wanted
    unmet = TO_BE_MET - OfficeMachine.met.keys()
    assert wanted < PINNED_STEPS or not unmet
