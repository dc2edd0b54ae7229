"""Who asks: the command line, the embedded stack, settings, and the place where everything meets.

The house is six packages with plain names at the root of the import path. Another distribution may hold one of them
(`store`, say): the guard below says so before anything of a stranger's runs in our place. It looks, imports nothing, and
touches no file: a workflow's sandbox may import this package, and allows neither.
"""

from importlib.util import find_spec

HOUSE = ("law", "store", "activities", "workflows", "patterns")


def guard_names() -> None:
    """Raise ImportError naming the package of the house that resolves to somebody else's, and where that stands."""
    root = __file__.removesuffix("nightbell/__init__.py")
    for name in HOUSE:
        found = where(name)
        if found != f"{root}{name}/__init__.py":
            raise ImportError(
                f"Nightbell's package `{name}` should be {root}{name}, but Python finds {found or 'nothing'} under that "
                f"name. Uninstall the distribution that brings the other `{name}`, or give Nightbell an environment of "
                "its own.",
                name=name,
            )


def where(name: str) -> str | None:
    """The file that a top-level package or module would be imported from."""
    spec = find_spec(name)
    return spec.origin if spec else None


guard_names()
