"""A real worker with one more thing around each activity: at the boundary that a plan file names, it kills -9 the process that
the plan names (itself, PostgreSQL or Temporal), once. The product knows nothing of this file."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, get_type_hints

from temporalio import activity

from nightbell.attach import attached
from nightbell.home import Home, read_state
from nightbell.settings import Settings
from nightbell.worker_process import run_worker


def reach(plan: Path, home: Path, boundary: str) -> None:
    """Die here if the plan says so; whoever takes the plan first is the only one to act on it."""
    if not plan.exists():
        return
    asked = json.loads(plan.read_text())
    if asked["boundary"] != boundary:
        return
    try:
        plan.rename(plan.with_suffix(".taken"))
    except FileNotFoundError:
        return
    victim = read_state(Home.at(home)).children.get(asked["victim"])
    os.kill(os.getpid() if asked["victim"] == "worker" or victim is None else victim.pid, signal.SIGKILL)


def dying(plan: Path, home: Path) -> Any:
    """What is put around each activity."""

    def around(name: str, answer: Any) -> Any:
        hints = get_type_hints(answer)

        async def walked(question: Any) -> Any:
            reach(plan, home, f"before {name}")
            answered = await answer(question)
            reach(plan, home, f"after {name}")
            return answered

        walked.__annotations__ = {"question": hints["question"], "return": hints["return"]}
        return activity.defn(name=name)(walked)

    return around


if __name__ == "__main__":
    import asyncio

    settings = attached(Settings())
    around = dying(Path(sys.argv[1]), settings.home)
    asyncio.run(run_worker(settings, around))
    os._exit(0)
