"""Which servers a command uses: the ones its environment names, else those of the home's running stack."""

from pydantic import SecretStr

from nightbell.home import Home
from nightbell.problems import StackProblem
from nightbell.settings import Settings
from nightbell.stack import attach


def attached(settings: Settings) -> Settings:
    """Settings that name a database and a Temporal. Raises StackProblem where neither the environment nor a running stack
    does."""
    if settings.database_url is not None and settings.temporal_address is not None:
        return settings
    try:
        found = attach(Home.at(settings.home)).address
    except StackProblem:
        if settings.database_url is not None:
            return settings
        raise
    named = {
        "database_url": settings.database_url or SecretStr(found.database_url),
        "temporal_address": settings.temporal_address or found.temporal_address,
    }
    return settings.model_copy(update=named)
