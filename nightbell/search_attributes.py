"""What the Temporal UI can be searched by, registered with a server that exists already."""

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.temporal_server import SEARCH_ATTRIBUTES
from nightbell.worker_process import connect

KINDS = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}


async def register_search_attributes(settings: Settings) -> list[str]:
    """Register the missing ones and return their names. Raises StackProblem when Temporal cannot be reached, or refuses: it
    has no such namespace, or asks for more than we are allowed."""
    client = await connect(settings, attempts=3)
    try:
        return await register_missing(client)
    except RPCError as problem:
        sentence = f"Temporal refuses to list or add search attributes in {client.namespace}: {problem.message}"
        raise StackProblem("temporal_refuses", sentence) from problem


async def register_missing(client: Client) -> list[str]:
    """Register the missing ones and return their names. Raises RPCError."""
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = {name: KINDS[kind] for name, kind in SEARCH_ATTRIBUTES.items() if name not in known.custom_attributes}
    if missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        await client.operator_service.add_search_attributes(request)
    return sorted(missing)
