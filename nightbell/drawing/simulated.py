"""What would run, wait and miss, as lanes: one for each Schedule over the stretch, and a strip of load for each capability.

The stretch is cut into equal parts. A part shows the worst that anything in it came to, so that one miss in a year of runs is
seen; how many there were of what stands beside it. Pure: lanes are counts, and a line is text of a given width.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from rich.text import Text

from law.identity import ScheduleName
from law.instants import instant_text
from law.reasons import OccurrenceState
from law.simulated import Outcome
from law.tally import BINS, Meter
from nightbell.drawing.months import wrapped
from nightbell.drawing.words import say_date, say_time

LABEL_MAX, GAP = 28, 2
LOAD = " ▁▂▃▄▅▆▇█"
NOTHING, TICK, AXIS = "·", "+", "-"


class Sign(Enum):
    """What a part of a lane can show, the worst first: its character, colour and words."""

    MISSED = ("x", "bold red", "missed")
    REFUSED = ("!", "bold red", "refused or failed")
    SUPPRESSED = ("s", "magenta", "suppressed")
    WAITED = ("░", "yellow", "waits")
    COALESCED = ("c", "cyan", "coalesced")
    RAN = ("█", "green", "runs")
    SKIPPED = ("-", "dim", "skipped")

    def __init__(self, character: str, style: str, words: str) -> None:
        self.character, self.style, self.words = character, style, words


SIGN_OF = {
    OccurrenceState.MISSED: Sign.MISSED,
    OccurrenceState.REFUSED: Sign.REFUSED,
    OccurrenceState.REVOKED: Sign.REFUSED,
    OccurrenceState.FAILED: Sign.REFUSED,
    OccurrenceState.SUPPRESSED: Sign.SUPPRESSED,
    OccurrenceState.COALESCED: Sign.COALESCED,
    OccurrenceState.SKIPPED: Sign.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring parts [begin, end) of one lane that show the same, and how many of what began in them."""

    begin: int
    end: int
    sign: Sign
    counts: Mapping[Sign, int]


class Lanes:
    """How many of what touched each part of each Schedule's lane."""

    def __init__(self, since: datetime, until: datetime, names: Sequence[ScheduleName]) -> None:
        self.since, self.until, self.names = since, until, names
        self.a_bin = (until - since) / BINS
        self.counts: dict[ScheduleName, dict[Sign, list[int]]] = {name: {} for name in names}
        self.begun: dict[ScheduleName, dict[Sign, list[int]]] = {name: {} for name in names}

    def add(self, one: Outcome) -> None:
        """Draw one outcome: its wait, its run, or the instant at which it was lost."""
        if one.waited and one.eligible_at is not None:
            self.paint(one.schedule, Sign.WAITED, one.eligible_at, one.decided_at or self.until)
        if one.run_from is not None:
            self.paint(one.schedule, Sign.RAN, one.run_from, one.run_to or self.until)
        elif one.decided_at is not None:
            self.paint(one.schedule, SIGN_OF[one.state], one.decided_at, one.decided_at)

    def paint(self, name: ScheduleName, sign: Sign, begin: datetime, end: datetime) -> None:
        """Count one thing in every part that [begin, end) touches; an instant touches one."""
        parts = self.counts[name].setdefault(sign, [0] * BINS)
        low = self.bin(begin)
        self.begun[name].setdefault(sign, [0] * BINS)[low] += 1
        for place in range(low, max(low, self.bin(end - timedelta(microseconds=1))) + 1):
            parts[place] += 1

    def bin(self, at: datetime) -> int:
        """The part in which an instant lies; what is past the end lies in the last."""
        return max(0, min((at - self.since) // self.a_bin, BINS - 1))

    def instant(self, place: int) -> datetime:
        """When a part begins."""
        return self.since + (self.until - self.since) * place / BINS

    def worst(self, name: ScheduleName, begin: int, end: int) -> Sign | None:
        """The worst that anything in these parts came to."""
        lane = self.counts[name]
        return next((sign for sign in Sign if sign in lane and any(lane[sign][begin:end])), None)

    def spans(self, name: ScheduleName) -> Iterator[Span]:
        """A lane as stretches that show the same, without those in which there is nothing."""
        begin = 0
        while begin < BINS:
            sign, end = self.worst(name, begin, begin + 1), begin + 1
            while end < BINS and self.worst(name, end, end + 1) is sign:
                end += 1
            if sign is not None:
                begun = self.begun[name]
                counts = {one: sum(begun[one][begin:end]) for one in Sign if one in begun}
                yield Span(begin, end, sign, {one: count for one, count in counts.items() if count})
            begin = end

    @property
    def signs(self) -> list[Sign]:
        """The signs that occur, the worst first."""
        return [sign for sign in Sign if any(sign in lane for lane in self.counts.values())]


def lane_lines(lanes: Lanes, meters: Mapping[str, Meter], width: int) -> Iterator[Text]:
    """The picture in a terminal, never wider than `width` where that leaves room for a few columns."""
    room = min(LABEL_MAX, max(len(name) for name in [*lanes.names, *meters]))
    columns = min(BINS, max(12, width - room - GAP))
    yield Text(" " * (room + GAP) + dates(lanes, columns))
    yield Text(" " * (room + GAP) + axis(columns))
    for name in lanes.names:
        yield label(name, room) + lane(lanes, name, columns)
    for name, meter in meters.items():
        yield label(name, room) + Text(load(meter.shares, columns), style="blue")
    yield Text("")
    said = [f"{sign.character} {sign.words}" for sign in lanes.signs]
    said += [f"{LOAD[-1]} under the lanes: how much of a capability is at work"] if meters else []
    a_column = say_span((lanes.until - lanes.since) / columns)
    yield from wrapped("", f"A column is {a_column} and shows the worst of it: {'; '.join(said)}.", width)


def label(name: str, room: int) -> Text:
    """A name in its column; of one that is too long, its end."""
    shown = name if len(name) <= room else f"…{name[1 - room :]}"
    return Text(shown.ljust(room + GAP))


def lane(lanes: Lanes, name: ScheduleName, columns: int) -> Text:
    """One lane as text."""
    text = Text()
    for begin, end in cuts(columns):
        sign = lanes.worst(name, begin, end)
        text.append(sign.character if sign is not None else NOTHING, style=sign.style if sign is not None else "dim")
    return text


def load(shares: Sequence[float], columns: int) -> str:
    """A strip of load: a higher block where more is at work, a space where nothing is."""
    found = list[str]()
    for begin, end in cuts(columns):
        share = sum(shares[begin:end]) / (end - begin)
        found.append(LOAD[min(len(LOAD) - 1, -int(-share * (len(LOAD) - 1) // 1))])
    return "".join(found)


def cuts(columns: int) -> Iterator[tuple[int, int]]:
    """The parts of every column."""
    for column in range(columns):
        begin = column * BINS // columns
        yield begin, max(begin + 1, (column + 1) * BINS // columns)


def dates(lanes: Lanes, columns: int) -> str:
    """The begin and the end of the stretch, in UTC."""
    begin, end = instant_text(lanes.since), instant_text(lanes.until)
    return begin + end.rjust(max(len(end) + 1, columns - len(begin)))


def axis(columns: int) -> str:
    """A stroke with ticks at its quarters."""
    quarters = {0, columns // 4, columns // 2, 3 * columns // 4, columns - 1}
    return "".join(TICK if column in quarters else AXIS for column in range(columns))


def say_span(span: timedelta) -> str:
    """A length of time, as roughly as a column is wide."""
    seconds = span.total_seconds()
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"


def say_at(at: datetime) -> str:
    """`Sun 25 Oct 2026 02:00Z`."""
    return f"{say_date(at.date())} {say_time(at)}Z"
