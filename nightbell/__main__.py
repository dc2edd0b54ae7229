"""`python -m nightbell`."""

from nightbell.cli import main

main()
