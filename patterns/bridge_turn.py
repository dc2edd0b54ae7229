"""The Bridge turn: answers one message, and leaves the answer as a file that can be checked (foreground work).

It is a small deterministic responder and says so in every answer file: exact arithmetic, greetings, and otherwise the words
counted. One effect, named by nothing but its Run: a hop that comes back after a crash is answered from the record, or held
for the operator while the effect is in doubt (IDN-5).
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from law.pattern import Casting, DidNotHappen, Done, Ending, Failed, Json, Pattern
from patterns.placing import put_in_place, sha256_of

ANSWERED_BY = "bridge_turn 1, a deterministic responder: arithmetic, greetings, words counted"
ARITHMETIC = re.compile(r"[0-9 .+\-*/()]{1,200}")
GREETING = re.compile(r"(hello|hi|hey|good (?:morning|day|evening|night))\b", re.IGNORECASE)
OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SHOWN = Context(prec=12)


class Message(BaseModel):
    """What the Bridge brings. What else its event carries is somebody else's."""

    model_config = ConfigDict(extra="ignore")

    message: str = Field(default="", max_length=10_000)
    reply_to: str = Field(default="", max_length=200)


def perform(casting: Casting, message: Message) -> Ending:
    """Write the answer, once: one that was written in an earlier hop is answered from its record."""
    answer = answer_to(message.message)
    try:
        written = casting.effect("write_answer", "answer", lambda: write_answer(casting, message, answer))
    except DidNotHappen as problem:
        return Failed(str(problem))
    return Done(note=f"answered in {written['path']}")


def answer_to(message: str) -> str:
    """The value of an arithmetic expression, a greeting returned, or the words counted."""
    said = message.strip()
    if ARITHMETIC.fullmatch(said):
        try:
            return f"{said} = {shown(evaluate(ast.parse(said, mode='eval').body, said))}"
        except ZeroDivisionError:
            return f"{said} has no value: nothing can be divided by zero."
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # dots and dashes that are no expression are words like any other
    if greeting := GREETING.match(said):
        return f"{greeting[0].capitalize()}. I do arithmetic; of anything else I count the words."
    words = len(said.split())
    return f"You said {words} word{'' if words == 1 else 's'}: {said}" if words else "You said nothing."


def evaluate(node: ast.expr, said: str) -> Fraction:
    """One node of what was said, exactly; read from the tree, never executed. Raises ValueError for any other node."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Fraction(ast.get_source_segment(said, node) or "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = evaluate(node.operand, said)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left, said), evaluate(node.right, said))
    raise ValueError("not plain arithmetic")


def shown(value: Fraction) -> str:
    """A whole number whole; any other to twelve digits, and `about` where that is not all of it."""
    if value.denominator == 1:
        return str(value.numerator)
    rounded = SHOWN.divide(Decimal(value.numerator), Decimal(value.denominator))
    text = f"{rounded.normalize(SHOWN):f}"
    return text if Fraction(text) == value else f"about {text}"


def write_answer(casting: Casting, message: Message, answer: str) -> Mapping[str, Json]:
    """Write question and answer under the event's own identity, whole or not at all."""
    content = {
        "question": message.message,
        "answer": answer,
        "sha256": sha256_of(answer.encode()),
        "reply_to": message.reply_to,
        "answered_by": ANSWERED_BY,
        "run_id": casting.run_id,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False).encode()
    path = f"outbox/{casting.trigger_occurrence_id}.json"
    put_in_place(Path(casting.workplace.files_folder) / path, text)
    return {"path": path, "bytes": len(text), "sha256": sha256_of(text)}


def pattern(digest: str) -> Pattern[Message]:
    """The Pattern, with the digest of its source. A lost hop may start again: its one effect is begun at most once."""
    return Pattern("bridge_turn", "1", Message, perform, digest, returns_to_checkpoint=True)
