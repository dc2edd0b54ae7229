"""Who asks: the command line, the embedded stack, settings, and the place where everything meets.

The house is six packages with plain names at the root of the import path. Another distribution may hold one of them
(`store`, say): the guard below says so before anything of a stranger's runs in our place. It looks and imports nothing.
"""

from importlib.util import find_spec
from pathlib import Path

HOUSE = ("law", "store", "activities", "workflows", "patterns")


def guard_names() -> None:
    """Raise ImportError naming the package of the house that resolves to somebody else's, and where that stands."""
    home = Path(__file__).resolve().parent.parent
    for name in HOUSE:
        found = where(name)
        if found != home / name:
            raise ImportError(
                f"Nightbell's package `{name}` should be {home / name}, but Python finds "
                f"{found or 'nothing'} under that name. Uninstall the distribution that brings the other `{name}`, "
                "or give Nightbell an environment of its own.",
                name=name,
            )


def where(name: str) -> Path | None:
    """The folder that a top-level package would be imported from."""
    spec = find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if places:
        return Path(places[0]).resolve()
    return Path(spec.origin).resolve() if spec and spec.origin else None


guard_names()
