"""The worker process, as it stands in the tree; installed, it is `nightbell worker`, with the same options and exit codes."""

import sys

from nightbell.cli import run
from nightbell.worker_process import leave

if __name__ == "__main__":
    leave(run(["worker", *sys.argv[1:]]))
