"""What is done to the fleet. One method a fault; its weight says how often it strikes beside the others."""

from __future__ import annotations

import contextlib
import os
import signal
from random import Random

from tests.chaos.arena import AGENTS, HERE, NAMES, Arena

WEIGHTS = {
    "kill_watchdog": 20,
    "stop_watchdog": 5,
    "second_watchdog": 5,
    "kill_agent": 15,
    "freeze_agent": 3,
    "exit_agent": 3,
    "become_shell": 5,
    "wedge_agent": 5,
    "spawn_children": 4,
    "limit_agent": 4,
    "kill_server": 5,
    "stop_server": 3,
    "kill_session": 5,
    "rename_session": 2,
    "split_pane": 3,
    "copy_mode": 2,
    "delete_lock": 2,
    "delete_state": 1,
    "garble_config": 5,
    "save_config": 5,
    "human_draft": 5,
    "send": 12,
    "down_up_one": 6,
    "down_up_all": 4,
    "restart": 4,
    "pause": 3,
    "reset": 8,
}


class Nemesis:
    """Strikes by chance, the same for the same seed; what it does is on record."""

    def __init__(self, arena: Arena, rng: Random) -> None:
        self.arena = arena
        self.rng = rng
        self.count = 0

    def strike(self) -> str:
        """One fault."""
        kind = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.count += 1
        getattr(self, kind)()
        return kind

    def _one(self, among: tuple[str, ...] = NAMES) -> str:
        return self.rng.choice(among)

    def _session(self, name: str) -> str:
        return f"={self.arena.project.prefix}{name}:"

    def _tell(self, name: str, step: str, kind: str) -> None:
        """A message that a scripted agent obeys."""
        self.arena.deed(kind, name)
        text = f"now {self.count} %%{step}%%"
        self.arena.verb("send", name, text, "--timeout", "15", names=(name,), text=text)

    # --- the supervisor -----------------------------------------------------------------------------

    def kill_watchdog(self) -> None:
        self.arena.deed("kill_watchdog")
        self.arena.signal(self.arena.dog_pid(), signal.SIGKILL)

    def stop_watchdog(self) -> None:
        pid = self.arena.dog_pid()
        self.arena.deed("stop_watchdog")
        if self.arena.signal(pid, signal.SIGSTOP):
            self.arena.later(self.rng.uniform(1, 5), lambda: self.arena.signal(pid, signal.SIGCONT))

    def second_watchdog(self) -> None:
        self.arena.deed("second_watchdog")
        self.arena.verb("watchdog", timeout=5.0)

    # --- agents -------------------------------------------------------------------------------------

    def kill_agent(self) -> None:
        name = self._one()
        self.arena.deed("kill_agent", name)
        self.arena.signal(self.arena.pane_pid(name), signal.SIGKILL)

    def freeze_agent(self) -> None:
        pid = self.arena.pane_pid(name := self._one())
        self.arena.deed("freeze_agent", name)
        if self.arena.signal(pid, signal.SIGSTOP):
            self.arena.later(self.rng.uniform(1, 4), lambda: self.arena.signal(pid, signal.SIGCONT))

    def exit_agent(self) -> None:
        self._tell(self._one(AGENTS), '{"exit": 0}', "exit_agent")

    def become_shell(self) -> None:
        name = self._one(AGENTS)
        ear = self.arena.root / f"ear-{name}"
        self._tell(name, f'{{"become": "sh {HERE}/ear.sh {ear}"}}', "become_shell")

    def wedge_agent(self) -> None:
        self._tell(self._one(AGENTS), '{"fatal": true}', "wedge_agent")

    def spawn_children(self) -> None:
        self._tell(self._one(AGENTS), '{"spawn": true}', "spawn_children")

    def limit_agent(self) -> None:
        banner = "You have hit your usage limit · resets {reset}"
        self._tell(self._one(AGENTS), f'{{"limit": "{banner}", "for": 15}}', "limit_agent")

    # --- tmux, and people at it ---------------------------------------------------------------------

    def kill_server(self) -> None:
        pid = self.arena.server_pid()
        self.arena.deed("kill_server")
        self.arena.signal(pid, signal.SIGKILL)

    def stop_server(self) -> None:
        pid = self.arena.server_pid()
        self.arena.deed("stop_server")
        if self.arena.signal(pid, signal.SIGSTOP):
            self.arena.later(self.rng.uniform(1, 4), lambda: self.arena.signal(pid, signal.SIGCONT))

    def kill_session(self) -> None:
        name = self._one()
        self.arena.deed("kill_session", name)
        self.arena.tmux("kill-session", "-t", self._session(name))

    def rename_session(self) -> None:
        name, other = self._one(), f"renamed-{self.count}"
        old = f"{self.arena.project.prefix}{name}"
        self.arena.deed("rename_session", name)
        self.arena.tmux("rename-session", "-t", f"={old}:", other)
        self.arena.later(3.0, lambda: self.arena.tmux("rename-session", "-t", f"={other}:", old))

    def split_pane(self) -> None:
        name = self._one()
        self.arena.deed("split_pane", name)
        self.arena.tmux("split-window", "-d", "-t", self._session(name), "sleep", "5")

    def copy_mode(self) -> None:
        name = self._one()
        self.arena.deed("copy_mode", name)
        self.arena.tmux("copy-mode", "-t", self._session(name))
        self.arena.later(3.0, lambda: self.arena.tmux("send-keys", "-t", self._session(name), "-X", "cancel"))

    def human_draft(self) -> None:
        name, text = self._one(AGENTS), f"HUMAN words {self.count}"
        pid = self.arena.pane_pid(name)
        self.arena.deed("human_draft", name, text=text)
        self.arena.tmux("send-keys", "-t", self._session(name), "-l", text)

        def enter() -> None:
            if self.arena.pane_pid(name) == pid:
                self.arena.deed("human_enter", name, text=text)
                self.arena.tmux("send-keys", "-t", self._session(name), "Enter")

        self.arena.later(self.rng.uniform(2, 6), enter)

    # --- files --------------------------------------------------------------------------------------

    def delete_lock(self) -> None:
        self.arena.deed("delete_lock")
        with contextlib.suppress(OSError):
            (self.arena.project.log_dir / "state" / "watchdog.lock").unlink()

    def delete_state(self) -> None:
        name = self._one()
        self.arena.deed("delete_state", name)
        for path in (self.arena.project.log_dir / "state" / "agents").glob(f"{name}.json*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def garble_config(self) -> None:
        good, config = self.arena.good, self.arena.project.config
        self.arena.deed("garble_config")
        cut = self.rng.randrange(1, len(good))
        config.write_bytes(good[:cut] + self.rng.choice((b"", b"\n[[[", b"\xff\x00")))
        self.arena.later(self.rng.uniform(0.5, 2), self.mend_config)

    def mend_config(self) -> None:
        """As an editor does: another file takes its place."""
        config = self.arena.project.config
        beside = config.with_suffix(f".{self.count}.tmp")
        beside.write_bytes(self.arena.good)
        os.replace(beside, config)

    def save_config(self) -> None:
        self.arena.deed("save_config")
        self.mend_config()

    # --- the operator -------------------------------------------------------------------------------

    def send(self) -> None:
        name, text = self._one(AGENTS), f"NOTE {self.count} for you"
        self.arena.deed("send", name)
        self.arena.verb("send", name, text, "--timeout", "20", names=(name,), text=text)

    def down_up_one(self) -> None:
        name = self._one()
        self.arena.deed("down_up_one", name)
        self.arena.verb("down", name, names=(name,)).result()
        self.arena.later(
            self.rng.uniform(0.5, 3), lambda: self.arena.verb("up", name, "--no-wait", names=(name,))
        )

    def down_up_all(self) -> None:
        self.arena.deed("down_up_all")
        self.arena.verb("down").result()
        self.arena.later(self.rng.uniform(0.5, 2), lambda: self.arena.verb("up", "--no-wait"))

    def restart(self) -> None:
        name = self._one()
        self.arena.deed("restart", name)
        self.arena.verb("restart", name, "--no-wait", names=(name,))

    def pause(self) -> None:
        name = self._one(AGENTS)
        self.arena.deed("pause", name)
        self.arena.verb("pause", name, names=(name,))
        self.arena.later(4.0, lambda: self.arena.verb("unpause", name, names=(name,)))

    def reset(self) -> None:
        self.arena.deed("reset")
        self.arena.verb("reset", *NAMES, names=NAMES)
