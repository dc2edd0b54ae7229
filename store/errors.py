"""What the store cannot do: the server is away, the schema is another. Lawful answers are never errors."""


class StoreProblem(Exception):
    """The store could not be asked. Nothing was changed by the call that raised this."""


class ServerUnreachable(StoreProblem):
    """PostgreSQL cannot be reached, or ended the connection before it answered."""


class SchemaMissing(StoreProblem):
    """The database has no Nightbell schema of this version; `nightbell migrate` makes it."""


class StoreBusy(StoreProblem):
    """Another transaction held what was needed for too long; nothing was decided, and asking again is safe."""
