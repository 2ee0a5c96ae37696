"""The outline of a declaration: what showing a fleet takes, without how its agents are started and judged.

The watchdog writes it into the view with the stamp of the file that it was read from, so that `status` reads
agents.toml only when that has changed.
"""

from __future__ import annotations

from dataclasses import dataclass

WATCHDOG = "watchdog"  # the reserved name: the session that runs the supervisor itself


@dataclass(frozen=True, slots=True)
class Listed:
    """An agent or a service of the file, as `status` lists it."""

    name: str
    session: str
    kind: str
    watch: str
    enabled: bool = True
    role: str = ""
    backend: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole fleet as it was declared."""

    config_path: str
    session_prefix: str
    log_dir: str
    tmux_socket: str
    project_id: str
    watchdog_session: str
    signal_interval: float
    agents: tuple[Listed, ...] = ()
    services: tuple[Listed, ...] = ()
    state_file: str = ""  # of the loop; empty when there is none
    phases: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[Listed, ...]:
        """Agents, then services."""
        return (*self.agents, *self.services)
