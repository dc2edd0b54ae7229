"""What the embedded stack says when it cannot run: one clear sentence, exit code 4, data untouched.

Every failure of a server, a home or a wheel becomes one `StackProblem` here, at the border where it is first understood.
Nothing is repaired by deleting: whoever raises one has changed no data.
"""


class StackProblem(Exception):
    """A server cannot be reached or started.

    `code` is a stable word for programs, `sentence` is for people and names the thing at fault and what to do. The
    command line ends with exit code 4.
    """

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)
