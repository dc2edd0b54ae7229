"""How long the crash walk is."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--crash-rounds", type=int, default=0, help="how often each boundary is walked; 0 is the short form"
    )
