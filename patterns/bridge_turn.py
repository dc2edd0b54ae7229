"""The Bridge turn: answers one message, and leaves the answer as a file that can be checked (foreground work).

It is a small deterministic responder and says so: it does arithmetic, counts words, and otherwise gives the message back.
"""

import ast
import hashlib
import json
import operator
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from law.pattern import Casting, Done, Ending, Json, Pattern

OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
ARITHMETIC_LENGTH_MAX = 200


class Message(BaseModel):
    """What the Bridge brings."""

    model_config = ConfigDict(extra="ignore")

    message: str = Field(default="", max_length=10_000)
    reply_to: str = Field(default="", max_length=200)


def perform(casting: Casting, message: Message) -> Ending:
    """Write the answer, once: an answer that was written in an earlier hop is answered from its record."""
    answer = answer_to(message.message)
    written = casting.effect("write_answer", "answer", lambda: write_answer(casting, message, answer))
    return Done(note=f"answered in {written['file']}")


def answer_to(message: str) -> str:
    """The answer: the value of an arithmetic expression, or the message counted."""
    value = value_of(message)
    if value is not None:
        return f"{message.strip()} = {value:g}"
    words = len(message.split())
    return f"You said {words} word{'' if words == 1 else 's'}: {message.strip() or 'nothing'}"


def value_of(text: str) -> float | None:
    """The value of plain arithmetic, or None for anything else. Evaluated over the syntax tree, never executed."""
    if len(text) > ARITHMETIC_LENGTH_MAX:
        return None
    try:
        return evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        return None


def evaluate(node: ast.expr) -> float:
    """One node of an arithmetic expression. Raises ValueError for any other node."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
    raise ValueError("not plain arithmetic")


def write_answer(casting: Casting, message: Message, answer: str) -> Mapping[str, Json]:
    """Write question and answer under this Run's own name, whole or not at all."""
    folder = Path(casting.workplace.files_folder) / "bridge"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {"question": message.message, "answer": answer, "reply_to": message.reply_to, "run_id": casting.run_id},
        indent=1,
    )
    file = folder / f"{casting.run_id}.json"
    fresh = file.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as sink:
        sink.write(text)
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(file)
    return {"file": file.name, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def pattern(digest: str) -> Pattern[Message]:
    """The Pattern, with the digest of this source. A lost hop may start again: its one effect is begun at most once."""
    return Pattern("bridge_turn", "1", Message, perform, digest, returns_to_checkpoint=True)
