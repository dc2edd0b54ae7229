"""The three admission promises (CLS-1..3). A class is neither a queue nor an origin: it says how work may wait, miss and yield."""

from typing import Literal

ServiceClass = Literal["foreground", "deadline_windowed", "spare_capacity"]

PREFERENCE: dict[ServiceClass, int] = {"foreground": 2, "deadline_windowed": 1, "spare_capacity": 0}
"""How much of the office's attention a class asks for; a request above its ceiling is lowered to it."""
