"""The worker process, as it stands in the tree; installed, it is `nightbell worker`."""

from nightbell.attach import attached
from nightbell.settings import Settings
from nightbell.worker_process import serve

if __name__ == "__main__":
    serve(attached(Settings()))
