"""Ports on loopback: the one that was asked for, else the one this home had, else any free one."""

import socket

import psutil

from nightbell.home import Ports
from nightbell.problems import StackProblem

LOOPBACK = "127.0.0.1"


def choose_ports(asked: Ports, remembered: Ports) -> Ports:
    """Three different free ports. Raises StackProblem when one that was asked for is in use, saying by whom."""
    taken: set[int] = set()
    chosen: dict[str, int] = {}
    for name in ("postgres", "temporal", "ui"):
        wish: int | None = getattr(asked, name)
        chosen[name] = required_port(name, wish) if wish else free_port(getattr(remembered, name), taken)
        if chosen[name] in taken:
            raise StackProblem("port_in_use", f"Port {chosen[name]} was asked for twice; {name} needs one of its own.")
        taken.add(chosen[name])
    return Ports(**chosen)


def required_port(name: str, port: int) -> int:
    """The port that was asked for. Raises StackProblem when it is in use."""
    if not is_free(port):
        raise StackProblem(
            "port_in_use",
            f"Port {port} for {name} is in use{by_whom(port)}. "
            "Stop it, ask for another port, or give none for a free one.",
        )
    return port


def free_port(remembered: int | None, taken: set[int]) -> int:
    """The remembered port while it is free, else one that the system names."""
    if remembered and remembered not in taken and is_free(remembered):
        return remembered
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of loopback now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def by_whom(port: int) -> str:
    """Who listens there, as far as this user may see."""
    try:
        listeners = [item for item in psutil.net_connections("tcp") if item.status == psutil.CONN_LISTEN]
        pid = next(item.pid for item in listeners if item.laddr and item.laddr.port == port and item.pid)
        return f" by {psutil.Process(pid).name()} (process {pid})"
    except (psutil.Error, StopIteration, OSError):
        return " by another process"
