"""The page of an SVG drawing: where rows and seconds lie on it, and strokes spelled as SVG spells them."""

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from law.zone_rules import ZoneRules
from nightbell.drawing.days import is_ordinary
from nightbell.drawing.picture import Picture

LEFT, RIGHT, PLOT, TOP = 132, 28, 960, 96
ROW, CLOSE_ROW, LABELS = 24, 14, 16
CLOSE_FROM = 62
"""More rows than this are drawn closer together."""
LABEL_ROOM = 24
"""An hour is labelled where the one before it is at least so far away."""
WIDTH = LEFT + PLOT + RIGHT


class Sheet:
    """Where rows and seconds lie on the page, and the elements put there so far."""

    def __init__(self, picture: Picture, rules: ZoneRules) -> None:
        self.picture, self.rules = picture, rules
        self.root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        self.row_height = CLOSE_ROW if len(picture.days) > CLOSE_FROM else ROW
        self.is_special = [not is_ordinary(rules, day) for day in picture.days]
        self.tops, height = list[int](), TOP
        for special in self.is_special:
            self.tops.append(height)
            height += ROW + LABELS + 4 if special else self.row_height
        self.foot = height

    def x(self, seconds: int) -> float:
        """The abscissa of a place in a row."""
        return LEFT + PLOT * seconds / self.picture.rows_seconds

    def height(self, row: int) -> int:
        """How high a row's own band is, without the labels under it."""
        return ROW if self.is_special[row] else self.row_height

    def middle(self, row: int) -> float:
        """The middle of a row's band."""
        return self.tops[row] + self.height(row) / 2

    def put(self, tag: str, text: str = "", title: str = "", **attributes: str | float) -> ET.Element:
        """Put one element on the page; `_` in a name stands for `-`, and a trailing one for nothing."""
        element = ET.SubElement(self.root, tag, named(attributes))
        element.text = text or None
        if title:
            ET.SubElement(element, "title").text = title
        return element


def named(attributes: Mapping[str, str | float]) -> dict[str, str]:
    """Attributes as SVG spells them, numbers as short as they are exact to a hundredth."""
    return {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        for name, value in attributes.items()
    }


def line(x: float, top: float, height: float) -> str:
    """A stroke down."""
    return f"M{x:.2f} {top:.2f} v{height:.2f}"


def cross(x: float, y: float, radius: float) -> str:
    """Two strokes through a middle."""
    size = 2 * radius
    return f"M{x - radius:.2f} {y - radius:.2f} l{size:.2f} {size:.2f} m0 {-size:.2f} l{-size:.2f} {size:.2f}"


def flag(x: float, top: float, height: float) -> str:
    """A stroke down with a flag at its head."""
    return f"M{x:.2f} {top + height:.2f} v{-height:.2f} l6 3 l-6 3"


def teeth(x: float, top: float, height: float) -> str:
    """A cut from top to foot, as paper is torn."""
    zigzag = " ".join(f"L{x + (3 if step % 2 else -3):.2f} {top + height * step / 6:.2f}" for step in range(1, 7))
    return f"M{x - 3:.2f} {top:.2f} {zigzag}"
