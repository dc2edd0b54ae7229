"""The foot of an SVG drawing: what the signs in it mean, what the clocks did in words, and what was left out."""

from collections.abc import Iterator

from law.firings import FiringKind
from law.schedule import ScheduleDocument
from nightbell.drawing.days import DAYS_MAX
from nightbell.drawing.picture import End, Part, Picture, calendar_of
from nightbell.drawing.sheet import WIDTH, Sheet, cross, flag, line, teeth
from nightbell.drawing.words import say_change

BEGIN, GAP, SAMPLE, LETTER, LINE_HEIGHT = 16, 26, 30, 6.0, 20
CHANGES_MAX = 8
"""So many changes of the clocks are told in words."""

SAMPLES = {
    "ring": "rings",
    "lost": "does not exist, recorded",
    "window": "may begin, until the latest start",
    "jitter": "jitter range",
    "latest": "latest start",
    "finish": "finish by",
    "first-reading": "first reading of a repeated time",
    "second-reading": "second reading",
    "cut": "the clocks jump forward",
    "dense": "how many in half an hour",
    "outside": "not asked for",
}
"""Every sign, and what it means."""


def foot(sheet: Sheet, document: ScheduleDocument) -> None:
    """Put the legend and the notes, and close the page under them."""
    x, y = float(BEGIN), sheet.foot + 30
    for sign in signs(sheet.picture):
        width = SAMPLE + len(SAMPLES[sign]) * LETTER + GAP
        if x + width > WIDTH:
            x, y = float(BEGIN), y + LINE_HEIGHT
        put_sample(sheet, sign, x, y)
        sheet.put("text", SAMPLES[sign], class_="quiet", x=x + SAMPLE, y=y)
        x += width
    for note in notes(sheet.picture, document):
        y += LINE_HEIGHT
        sheet.put("text", note, class_="quiet", x=BEGIN, y=y)
    height = y + LINE_HEIGHT
    for name, value in (("viewBox", f"0 0 {WIDTH} {height}"), ("width", str(WIDTH)), ("height", str(height))):
        sheet.root.set(name, value)


def signs(picture: Picture) -> list[str]:
    """The signs that occur in a picture."""
    parts, ends = {bar.part for bar in picture.bars}, {tick.end for tick in picture.ticks}
    kinds = {mark.kind for mark in picture.marks}
    occurs = {
        "ring": bool(kinds & {FiringKind.NORMAL, FiringKind.FOLD, FiringKind.GAP_ADVANCED}),
        "lost": bool(kinds & {FiringKind.GAP_SKIPPED, FiringKind.GAP_FAILED}),
        "window": Part.WINDOW in parts,
        "jitter": Part.JITTER in parts,
        "latest": End.LATEST_START in ends,
        "finish": End.FINISH_BY in ends,
        "first-reading": Part.FIRST_READING in parts,
        "second-reading": Part.SECOND_READING in parts,
        "cut": bool(picture.cuts),
        "dense": bool(picture.bins),
        "outside": Part.OUTSIDE in parts,
    }
    return [sign for sign in SAMPLES if occurs[sign]]


def put_sample(sheet: Sheet, sign: str, x: float, y: float) -> None:
    """One sign as it looks in a row."""
    middle, top = x + SAMPLE / 2 - 4, y - 12
    match sign:
        case "ring":
            sheet.put("circle", class_="ring", cx=middle, cy=y - 4, r=5)
        case "lost":
            sheet.put("path", class_="lost", d=cross(middle, y - 4, 5))
        case "latest":
            sheet.put("path", class_="latest", d=line(middle, top, 14))
        case "finish":
            sheet.put("path", class_="finish", d=flag(middle, top, 14))
        case "cut":
            sheet.put("path", class_="cut", d=teeth(middle, top, 15))
        case "first-reading" | "second-reading":
            sheet.put("rect", fill=f"url(#{sign})", x=x, y=top, width=SAMPLE - 8, height=14)
        case _:
            sheet.put("rect", class_=sign, x=x, y=y - 9, width=SAMPLE - 8, height=10)


def notes(picture: Picture, document: ScheduleDocument) -> Iterator[str]:
    """What the clocks did, and what the drawing leaves out."""
    trigger = calendar_of(document)
    jumps = [jump for day in picture.days for jump in day.jumps]
    for jump in jumps[:CHANGES_MAX]:
        yield f"{say_change(trigger, jump)}."
    if len(jumps) > CHANGES_MAX:
        yield f"The clocks change {len(jumps) - CHANGES_MAX} times more."
    if picture.bins:
        most = max(one.count for one in picture.bins)
        left_out = ", without windows" if document.window is not None else ""
        yield (
            f"A day with more than {picture.marks_a_day_max} firings is drawn by how many ring in each half hour{left_out}: "
            f"the highest bar is {most}."
        )
    if picture.is_cut_short:
        yield f"At most {DAYS_MAX} days are drawn; the stretch that was asked for goes on."
