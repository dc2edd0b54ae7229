"""Where everything meets: store, lanes, Patterns and Temporal become the activities of one worker."""

import os
import socket
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

from temporalio.client import Client

from activities.hops import HopActivities
from activities.lanes import TemporalLane
from activities.publishing import PublishActivities
from activities.relaying import RelayActivities
from activities.schedules import ScheduleActivities
from law.identity import Digest
from law.merging import merge_with
from law.pattern import Pattern, Workplace
from nightbell.settings import Settings
from patterns.catalogue import installed
from store.authority import InstalledPattern
from store.connection import Pool


@dataclass(frozen=True, slots=True)
class House:
    """What the activities of one worker share."""

    settings: Settings
    pool: Pool
    client: Client
    task_queue: str
    tools_folder: str
    threads: Executor


def activities_of(house: House, carriers: Executor) -> Mapping[str, Any]:
    """Every activity by name. `carriers` are the threads in which Patterns run."""
    catalogue = {(one.key, one.revision): one for one in installed()}
    lanes = {TemporalLane.name: TemporalLane(house.client, house.task_queue)}
    worker = f"{socket.gethostname()}:{os.getpid()}"
    schedules = ScheduleActivities(house.pool, house.threads, merge_with(catalogue))
    hops = HopActivities(house.pool, house.threads, carriers, catalogue, workplace(house), worker)
    publishing = PublishActivities(house.pool, house.threads, lanes)
    relaying = RelayActivities(house.pool, house.threads, house.client, house.task_queue, lanes, catalogue)
    return {
        "materialize": schedules.materialize,
        "decide": schedules.decide,
        "offer": schedules.offer,
        "activate": schedules.activate,
        "publish": publishing.publish,
        "claim": hops.claim,
        "perform": hops.perform,
        "settle": hops.settle,
        "sweep": relaying.sweep,
    }


def workplace(house: House) -> Workplace:
    """What stands around a Pattern here."""
    url = house.settings.database_url
    house.settings.files_folder.mkdir(parents=True, exist_ok=True)
    return Workplace(str(house.settings.files_folder), house.tools_folder, url.get_secret_value() if url else "")


def installed_patterns() -> list[InstalledPattern]:
    """What this process can carry, as the store knows Patterns."""
    return [as_stored(one) for one in installed()]


def as_stored(one: Pattern[Any]) -> InstalledPattern:
    """A Pattern's declarations as the store keeps them: they are part of the source that its digest is taken of."""
    contract = None
    if one.yields is not None:
        said = asdict(one.yields)
        contract = {"max_slice_seconds": said.pop("max_slice").total_seconds(), **said}
    digest, merges = Digest(one.digest), one.merge is not None
    return InstalledPattern(one.key, one.revision, digest, merges, contract, one.returns_to_checkpoint, one.recovers)
