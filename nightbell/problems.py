"""What keeps a command from reaching its servers: one sentence for a person, exit code 4, and data left as it was.

Every failure of a server, a home or a wheel becomes one `StackProblem` where it is first understood. Nothing is
repaired by deleting: whoever raises one has changed no data.
"""

DONE, USAGE, REFUSED, UNREACHABLE, INTERRUPTED = 0, 2, 3, 4, 130
"""The exit codes of every command."""


class StackProblem(Exception):
    """A server of the stack cannot be started, reached or stopped.

    `code` is a stable word for programs; `sentence` is for people, names the thing at fault and says what to do.
    """

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)
