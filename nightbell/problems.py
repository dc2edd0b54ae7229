"""What keeps a command from reaching its servers: one sentence for a person, exit code 4, and data left as it was."""


class StackProblem(Exception):
    """A server of the stack cannot be started, reached or stopped. The message is a sentence with what to do."""

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)
