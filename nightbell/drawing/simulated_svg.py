"""The lanes as one SVG file: no script, no font and nothing else from outside; its words are text, light or dark as read.

A lane shows its signs by height and place as well as by colour: what ran stands in the middle, what waits is hatched, what was
lost reaches from edge to edge and is crossed. Every stretch has a title that says when it is and how many there were.
"""

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from law.identity import ScheduleName
from law.instants import instant_text
from law.tally import BINS, Meter
from nightbell.drawing.sheet import cross, line, named
from nightbell.drawing.simulated import Lanes, Sign, Span, say_at, say_span
from nightbell.drawing.svg_style import HATCH_SIZE, STYLE
from nightbell.drawing.words import MONTHS

LEFT, PLOT, RIGHT, TOP = 220, 960, 52, 96
LANE, CLOSE_LANE, CLOSE_FROM = 22, 12, 40
STRIP, ABOVE_STRIP = 40, 14
"""How high the load of one capability is drawn."""
LETTERS_MAX = 32
TICKS = 8
"""So many parts the axis is labelled in."""
SAMPLE, LETTER, NEXT = 30, 6.2, 26

LANE_STYLE = """
.ran { fill: #1a7f37; } .waited { fill: url(#waits); } .missed, .refused { fill: var(--late); }
.suppressed { fill: var(--gap); } .coalesced { fill: var(--ring); } .skipped { fill: var(--quiet); }
.crossed { stroke: var(--paper); stroke-width: 1.2; fill: none; }
.load { fill: var(--window); stroke: var(--ring); }
@media (prefers-color-scheme: dark) { .ran { fill: #3fb950; } }
"""
PLACES: Mapping[Sign, tuple[float, float]] = {
    Sign.MISSED: (0.0, 1.0),
    Sign.REFUSED: (0.0, 1.0),
    Sign.SUPPRESSED: (0.5, 0.5),
    Sign.WAITED: (0.15, 0.7),
    Sign.COALESCED: (0.0, 0.5),
    Sign.RAN: (0.3, 0.4),
    Sign.SKIPPED: (0.45, 0.1),
}
"""Where in its lane each sign begins and how high it is, as shares of the lane."""


class Page:
    """The page, and what was put there so far."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        self.lane_height = CLOSE_LANE if len(lanes.names) > CLOSE_FROM else LANE
        self.y = float(TOP)

    def put(self, tag: str, text: str = "", title: str = "", **attributes: str | float) -> ET.Element:
        """Put one element on the page; `_` in a name stands for `-`, and a trailing one for nothing."""
        element = ET.SubElement(self.root, tag, named(attributes))
        element.text = text or None
        if title:
            ET.SubElement(element, "title").text = title
        return element

    def x(self, place: int) -> float:
        """Where a part begins."""
        return LEFT + PLOT * place / BINS


def svg_text(lanes: Lanes, meters: Mapping[str, Meter]) -> str:
    """The whole file. The same lanes and loads give the same bytes."""
    page = Page(lanes)
    head(page, meters)
    put_axis(page, len(meters))
    for row, name in enumerate(lanes.names):
        put_lane(page, row, name)
    for name, meter in meters.items():
        put_load(page, name, meter)
    foot(page, meters)
    ET.indent(page.root)
    return ET.tostring(page.root, encoding="unicode", short_empty_elements=True) + "\n"


def head(page: Page, meters: Mapping[str, Meter]) -> None:
    """Title and description for whoever cannot see, style, title and axis for whoever can."""
    title, lanes = "What would run, wait and miss", page.lanes
    stretch = f"{instant_text(lanes.since)} to {instant_text(lanes.until)}"
    page.root.set("aria-labelledby", "title description")
    page.put("title", title, id="title")
    page.put("desc", described(lanes, meters, stretch), id="description")
    page.put("style", STYLE + LANE_STYLE)
    size = str(HATCH_SIZE)
    shape = {"id": "waits", "width": size, "height": size, "patternUnits": "userSpaceOnUse"}
    ET.SubElement(
        ET.SubElement(page.put("defs"), "pattern", shape), "path", {"class": "hatch", "d": "M-1 7 L7 -1 M2 10 L10 2"}
    )
    page.put("rect", class_="paper", width="100%", height="100%")
    page.put("text", title, class_="title", x=16, y=30)
    page.put("text", stretch, class_="quiet", x=16, y=50)


def put_axis(page: Page, meters_count: int) -> None:
    """When it is, above, and strokes down to the foot."""
    height = page.lane_height * len(page.lanes.names) + (STRIP + ABOVE_STRIP) * meters_count
    for tick in range(TICKS + 1):
        place = BINS * tick // TICKS
        at, x = page.lanes.instant(place), page.x(place)
        page.put("text", f"{at.day} {MONTHS[at.month - 1]} {at:%H:%M}", class_="hour quiet", x=x, y=TOP - 10)
        page.put("path", class_="grid", d=line(x, TOP - 4, height + 4))


def described(lanes: Lanes, meters: Mapping[str, Meter], stretch: str) -> str:
    """The drawing in sentences: its stretch, what occurs in each lane, and every load."""
    said = [f"{stretch}, {len(lanes.names)} Schedules."]
    for name in lanes.names:
        begun = lanes.begun[name]
        counts = [f"{sum(begun[sign])} {sign.words}" for sign in Sign if sign in begun]
        said.append(f"{name}: {', '.join(counts) or 'nothing'}.")
    for name, meter in meters.items():
        most = f"at most {meter.peak_units} of {meter.capability.units} units at once"
        said.append(f"{name}: {most}, {100 * meter.busy_share:.1f} % at work.")
    return " ".join(said)


def put_lane(page: Page, row: int, name: ScheduleName) -> None:
    """One Schedule: its name, its band, and what occurs in it."""
    top, height = page.y, page.lane_height
    shown = name if len(name) <= LETTERS_MAX else f"…{name[1 - LETTERS_MAX :]}"
    page.put("text", shown, class_="day" if height == LANE else "day quiet", x=LEFT - 10, y=top + height / 2 + 4)
    page.put("rect", class_="band" if row % 2 else "row", x=LEFT, y=top, width=PLOT, height=height)
    for span in page.lanes.spans(name):
        put_span(page, span, top)
    page.y += height


def put_span(page: Page, span: Span, top: float) -> None:
    """One stretch of a lane; what was lost is crossed, so that it reads the same without colour."""
    begin, high = PLACES[span.sign]
    x, height = page.x(span.begin), page.lane_height
    width = page.x(span.end) - x
    counts = ", ".join(f"{count} {sign.words}" for sign, count in span.counts.items()) or span.sign.words
    when = f"{say_at(page.lanes.instant(span.begin))} to {say_at(page.lanes.instant(span.end))}"
    sign, y = span.sign.name.lower(), top + height * begin
    page.put("rect", title=f"{when}: {counts}", class_=sign, x=x, y=y, width=width, height=height * high)
    if span.sign in (Sign.MISSED, Sign.REFUSED):
        page.put("path", class_="crossed", d=cross(x + width / 2, top + height / 2, min(width, height) * 0.3))


def put_load(page: Page, name: str, meter: Meter) -> None:
    """One capability: how much of it is at work, against all there is."""
    page.y += ABOVE_STRIP
    top, shares = page.y, meter.shares
    page.put("text", name, class_="day", x=LEFT - 10, y=top + STRIP / 2)
    share = f"{100 * meter.busy_share:.1f} % of {meter.capability.units}, peak {meter.peak_units}"
    page.put("text", share, class_="day quiet", x=LEFT - 10, y=top + STRIP / 2 + 14)
    page.put("rect", class_="row", x=LEFT, y=top, width=PLOT, height=STRIP)
    foot_y = top + STRIP
    steps = [f"M{LEFT} {foot_y:.2f}"]
    for place, part in enumerate(shares):
        y = foot_y - STRIP * min(1.0, part)
        steps.append(f"L{page.x(place):.2f} {y:.2f} H{page.x(place + 1):.2f}")
    steps.append(f"V{foot_y:.2f} Z")
    page.put("path", title=f"{name}: {share}", class_="load", d=" ".join(steps))
    page.y += STRIP


def foot(page: Page, meters: Mapping[str, Meter]) -> None:
    """The legend, and the size of the page."""
    x, y = 16.0, page.y + 32
    for sign in page.lanes.signs:
        begin, high = PLACES[sign]
        page.put("rect", class_=sign.name.lower(), x=x, y=y - 12 + 16 * begin, width=SAMPLE - 8, height=16 * high)
        if sign in (Sign.MISSED, Sign.REFUSED):
            page.put("path", class_="crossed", d=cross(x + (SAMPLE - 8) / 2, y - 4, 5))
        page.put("text", sign.words, class_="quiet", x=x + SAMPLE, y=y)
        x += SAMPLE + len(sign.words) * LETTER + NEXT
    part = say_span(page.lanes.a_bin)
    note = f"A part is {part} and shows the worst that anything in it came to."
    load = " Under the lanes: how much of each capability is at work." if meters else ""
    page.put("text", note + load, class_="quiet", x=16, y=y + 22)
    width, height = LEFT + PLOT + RIGHT, y + 44
    for key, value in (("viewBox", f"0 0 {width} {height:.0f}"), ("width", f"{width}"), ("height", f"{height:.0f}")):
        page.root.set(key, value)
