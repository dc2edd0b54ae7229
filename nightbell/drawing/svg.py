"""The picture as one SVG file: no script, no font and nothing else from outside; its words are text (CAL-2, CAL-9).

A row is a day and its axis the time that passed since the day began. On an ordinary day that is the time of day, which the
head of the drawing labels; a day on which the clocks change is a taller row with the hours as its clocks read them. Here is
only how it is laid out: what is drawn, and where in a row, is the picture's.
"""

from xml.etree import ElementTree as ET

from law.firings import FiringKind
from law.schedule import ScheduleDocument
from law.zone_rules import ZoneRules
from nightbell.drawing.days import ONE_DAY, Day, hours_of
from nightbell.drawing.picture import A_DAY_SECONDS, Bar, Bin, Cut, End, Mark, Part, Picture, Tick
from nightbell.drawing.sheet import LABEL_ROOM, LEFT, PLOT, ROW, TOP, Sheet, cross, flag, line, teeth
from nightbell.drawing.svg_legend import foot
from nightbell.drawing.svg_style import HATCH_SIZE, HATCHES, STYLE
from nightbell.drawing.words import say_civil, say_date, say_for

DIGEST_SHOWN = len("sha256:") + 12
DESCRIBED_MAX = 24
"""So many special firings are told in the description."""

WORDS_ROOM = 160
WINDOWS = (Part.JITTER, Part.WINDOW)
LOST = (FiringKind.GAP_SKIPPED, FiringKind.GAP_FAILED)
FATES = {
    FiringKind.GAP_SKIPPED: "skipped, recorded",
    FiringKind.GAP_FAILED: "failed, recorded",
    FiringKind.GAP_ADVANCED: "advanced to the change",
}


def svg_text(document: ScheduleDocument, rules: ZoneRules, picture: Picture) -> str:
    """The whole file. The same Schedule, rules and stretch give the same bytes."""
    sheet = Sheet(picture, rules)
    head(sheet, document)
    for row, day in enumerate(picture.days):
        put_row(sheet, row, day)
    most = max((one.count for one in picture.bins), default=1)
    for one in picture.bins:
        put_bin(sheet, one, most)
    for part in Part:
        for bar in picture.bars:
            if bar.part is part:
                put_bar(sheet, bar)
    for cut in picture.cuts:
        put_cut(sheet, cut)
    for tick in picture.ticks:
        put_tick(sheet, tick)
    for mark in picture.marks:
        put_mark(sheet, mark)
    foot(sheet, document)
    ET.indent(sheet.root)
    return ET.tostring(sheet.root, encoding="unicode", short_empty_elements=True) + "\n"


def head(sheet: Sheet, document: ScheduleDocument) -> None:
    """Title and description for whoever cannot see, style, title and axis for whoever can."""
    title, source = f"{document.schedule}: when it rings", source_of(sheet.rules)
    sheet.root.set("aria-labelledby", "title description")
    sheet.put("title", title, id="title")
    sheet.put("desc", described(sheet.picture, source), id="description")
    sheet.put("style", STYLE)
    hatches = sheet.put("defs")
    for name, strokes in HATCHES:
        size = str(HATCH_SIZE)
        tile = ET.SubElement(
            hatches, "pattern", {"id": name, "width": size, "height": size, "patternUnits": "userSpaceOnUse"}
        )
        ET.SubElement(tile, "path", {"class": "hatch", "d": strokes})
    sheet.put("rect", class_="paper", width="100%", height="100%")
    sheet.put("text", str(document.schedule), class_="title", x=16, y=30)
    sheet.put("text", source, class_="quiet", x=16, y=50)
    sheet.put("text", "hours of the day", class_="day quiet", x=LEFT - 10, y=TOP - 8)
    for hour in range(sheet.picture.rows_seconds // 3600 + 1):
        x = sheet.x(hour * 3600)
        if hour % 3 == 0:
            sheet.put("text", f"{hour:02}", class_="hour quiet", x=x, y=TOP - 8)


def source_of(rules: ZoneRules) -> str:
    """The zone, the release and the beginning of the digest of its rules."""
    return f"{rules.zone} by the rules of {rules.release}, {rules.digest[:DIGEST_SHOWN]}…"


def described(picture: Picture, source: str) -> str:
    """The drawing in sentences: its stretch, how many marks, and every one that is not ordinary."""
    days = picture.days
    special = [f"{mark.words}." for mark in picture.marks if mark.kind is not FiringKind.NORMAL]
    counted = sum(mark.count for mark in picture.marks if mark.kind not in LOST) + sum(
        one.count for one in picture.bins
    )
    said = f"{source}. {say_date(days[0].on)} to {say_date(days[-1].on)}: {len(days)} days, {counted} firings."
    return " ".join([said, *special[:DESCRIBED_MAX]])


def put_row(sheet: Sheet, row: int, day: Day) -> None:
    """One day: its date, its band as long as it lasted, and its own hours where they are not those of the head."""
    top, height, is_special = sheet.tops[row], sheet.height(row), sheet.is_special[row]
    if is_special or row % 7 == 0 or sheet.row_height == ROW:
        sheet.put("text", say_date(day.on), class_="day", x=LEFT - 10, y=sheet.middle(row) + 4)
    if not day.seconds:
        sheet.put("text", "skipped as a whole", class_="day gap", x=LEFT - 10, y=sheet.middle(row) + 17)
        return
    sheet.put(
        "rect", class_="band" if row % 2 else "row", x=LEFT, y=top, width=sheet.x(day.seconds) - LEFT, height=height
    )
    if is_special:
        put_hours(sheet, row, day)
        lasted = f"{say_for(day.seconds)} long"
        sheet.put("text", lasted, class_="day quiet", x=LEFT - 10, y=sheet.middle(row) + 17)
        return
    for seconds in range(0, A_DAY_SECONDS, 3 * 3600):
        sheet.put("path", class_="grid", d=line(sheet.x(seconds), top, height))


def put_hours(sheet: Sheet, row: int, day: Day) -> None:
    """The hours of a day as its clocks read them, those that they read again in the fold's colour."""
    top, height, past = sheet.tops[row], sheet.height(row), -LABEL_ROOM
    for hour in hours_of(sheet.rules, day):
        x = sheet.x(hour.seconds)
        if hour.civil.hour % 3 == 0:
            sheet.put("path", class_="grid", d=line(x, top, height))
        if x - past >= LABEL_ROOM:
            is_end = hour.civil.hour == 0 and hour.civil.date() == day.on + ONE_DAY
            label = "24" if is_end else f"{hour.civil.hour:02}"
            style = "hour fold" if hour.is_again else "hour quiet"
            sheet.put("text", label, class_=style, x=x, y=top + height + 13)
            past = x


def put_bar(sheet: Sheet, bar: Bar) -> None:
    """A stretch of one row: hatched over its whole height for a reading, a thinner bar for a window."""
    piece = bar.piece
    top, height = sheet.tops[piece.row], sheet.height(piece.row)
    x, width = sheet.x(piece.begin_seconds), sheet.x(piece.end_seconds) - sheet.x(piece.begin_seconds)
    match bar.part:
        case Part.FIRST_READING | Part.SECOND_READING:
            fill = f"url(#{bar.part.value.replace(' ', '-')})"
            sheet.put(
                "rect", title=f"{bar.part.value} of a repeated time", fill=fill, x=x, y=top, width=width, height=height
            )
        case Part.OUTSIDE:
            sheet.put("rect", class_="outside", x=x, y=top, width=width, height=height)
        case Part.JITTER:
            sheet.put("rect", class_="jitter", x=x, y=top + height * 0.2, width=max(1, width), height=height * 0.6)
        case Part.WINDOW:
            sheet.put("rect", class_="window", x=x, y=top + height * 0.3, width=max(1, width), height=height * 0.4)


def put_cut(sheet: Sheet, cut: Cut) -> None:
    """A jump forward: the row is cut through, and what the clocks read before and after is written beside."""
    row, jump = cut.place.row, cut.jump
    x, top, height = sheet.x(cut.place.seconds), sheet.tops[row], sheet.height(row)
    words = f"{say_civil(jump.before)} becomes {say_civil(jump.after)}"
    sheet.put("path", title=words, class_="cut", d=teeth(x, top, height))


def put_tick(sheet: Sheet, tick: Tick) -> None:
    """A bound: a stroke for the latest start, a flag for the finish."""
    row, x = tick.place.row, sheet.x(tick.place.seconds)
    top, height = sheet.tops[row], sheet.height(row)
    if tick.end is End.LATEST_START:
        sheet.put("path", class_="latest", d=line(x, top + height * 0.15, height * 0.7))
    else:
        sheet.put("path", class_="finish", d=flag(x, top + 2, height - 4))


def put_mark(sheet: Sheet, mark: Mark) -> None:
    """A firing: a disc where it rings, a disc in the cut where it was advanced, a cross where it was lost."""
    row, x, y = mark.place.row, sheet.x(mark.place.seconds), sheet.middle(mark.place.row)
    radius = min(5.0, sheet.height(row) * 0.28)
    if mark.kind in LOST:
        sheet.put("path", title=mark.words, class_="lost", d=cross(x, y, radius))
    else:
        sheet.put("circle", title=mark.words, class_="ring", cx=x, cy=y, r=radius)
    if mark.kind in FATES and sheet.is_special[row]:
        many = f"{mark.count} times " if mark.count > 1 else ""
        sheet.put("text", f"{many}{FATES[mark.kind]}", class_="gap", x=clear_of_windows(sheet, mark) + 9, y=y + 4)


def clear_of_windows(sheet: Sheet, mark: Mark) -> float:
    """Where words about a mark can be read: behind whatever is drawn of windows in its row, or beside it where that is too
    far to the right."""
    row, picture = mark.place.row, sheet.picture
    ends = [bar.piece.end_seconds for bar in picture.bars if bar.piece.row == row and bar.part in WINDOWS]
    ends += [tick.place.seconds for tick in picture.ticks if tick.place.row == row]
    past = sheet.x(max([mark.place.seconds, *ends]))
    return past if past <= LEFT + PLOT - WORDS_ROOM else sheet.x(mark.place.seconds)


def put_bin(sheet: Sheet, one: Bin, most: int) -> None:
    """Half an hour by how much rings in it, against the most that ever does: as high as that, from the row's foot."""
    row, piece = one.piece.row, one.piece
    x, height = sheet.x(piece.begin_seconds), sheet.height(row) * 0.9 * one.count / most
    width = sheet.x(piece.end_seconds) - x
    y = sheet.tops[row] + sheet.height(row) - height
    sheet.put("rect", title=f"{one.count} firings", class_="dense", x=x, y=y, width=max(0.5, width - 1), height=height)
