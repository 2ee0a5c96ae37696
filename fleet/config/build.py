"""The document as a Fleet: inheritance, paths, and every rule that looks at more than one key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from fleet.config.backend_tables import Backends
from fleet.config.keys import BY_SECTION
from fleet.config.loop_table import build_loop
from fleet.config.problems import Findings, KeyPath
from fleet.config.tables import Reader
from fleet.core.model import Fleet, Member, Notify, Price, Wake, Watch, WatchdogSpec
from fleet.core.outline import WATCHDOG, project_id
from fleet.text import did_you_mean

_WATCH_BY_KIND: dict[str, Watch] = {"loop": "heal+stall", "persistent": "heal", "task": "none"}
_REMOTE = r"[^/]*:|[^/]+@[^/]+:"  # an address git understands, not a path of ours
SESSION_LENGTH = 80  # file names are made from it
_TOP = ("watchdog", "defaults", "backend", "agent", "service", "loop", "notify", "price")


class Build:
    """One reading of one file. Holds what the parts need from each other."""

    def __init__(
        self,
        document: dict[str, Any],
        path: str,
        report: Findings,
        *,
        strict: bool,
        ground: bool,
        is_file: Callable[[str], bool],
        profiles: Mapping[str, dict[str, Any]] | None,
    ) -> None:
        self.report = report
        self.reader = Reader(report, strict=strict)
        self.missing_file = report.error if strict else report.warn
        self.no_ground = report.error if strict or ground else report.warn
        self.is_file = is_file
        self.document = document
        self.config_path = os.path.abspath(path)
        for name in document:
            if name not in _TOP:
                self.reader.unknown(name, _TOP, (name,))
        self.defaults = self.reader.table("defaults", document.get("defaults", {}), ("defaults",))
        self._written_defaults = _written(document.get("defaults"))
        self.prefix: str = self.defaults["session_prefix"]
        self.project_dir = os.path.dirname(self.config_path)
        self.project_dir = self.path(self.defaults["project_dir"], ("defaults", "project_dir"))
        self.log_dir = self.path(self.defaults["log_dir"], ("defaults", "log_dir"))
        self._log_dir_is_its_own()
        self.backends = Backends(self.section("backend"), self.reader, profiles)

    def fleet(self) -> Fleet:
        """Everything, checked. Only to be used when the report has no errors."""
        agents = tuple(self._agent(row, index) for index, row in enumerate(self._rows("agent")))
        services = tuple(self._service(row, index) for index, row in enumerate(self._rows("service")))
        self._names_are_unique(agents, services)
        watchdog = self.reader.table("watchdog", self.document.get("watchdog", {}), ("watchdog",))
        loop, loop_logs_tokens = build_loop(self, agents)
        watchdog["log_tokens"] = watchdog["log_tokens"] or loop_logs_tokens
        notify = self.reader.tables("notify", self.document.get("notify", []), ("notify",))
        for index, row in enumerate(notify):
            self._notify_is_whole(row, index)
        return Fleet(
            config_path=self.config_path,
            project_dir=self.project_dir,
            session_prefix=self.prefix,
            log_dir=self.log_dir,
            tmux_socket=self.defaults["tmux_socket"] or f"ao-{self.prefix.rstrip('-_')}",
            project_id=project_id(os.path.realpath(self.config_path), self.prefix),
            watchdog=WatchdogSpec(**watchdog),
            backends=self.backends.made(),
            members=(*agents, *services),
            loop=loop,
            notify=tuple(Notify(**row) for row in notify),
            prices=tuple(
                Price(model=model, **self.reader.table("price", raw, ("price", model)))
                for model, raw in self.section("price").items()
            ),
        )

    def section(self, name: str) -> dict[str, Any]:
        """A table of tables, such as [backend.NAME]."""
        raw = self.document.get(name, {})
        if isinstance(raw, dict):
            return raw
        self.report.error((name,), "expected tables", f"write [{name}.NAME]")
        return {}

    def path(self, written: str, where: KeyPath, base: str = "") -> str:
        """A path as the file means it: ~ expanded, relative to the project."""
        if written.startswith("~"):
            expanded = os.path.expanduser(written)
            if expanded.startswith("~"):
                self.report.error(where, f'"{written}" names a home directory that is not known')
            written = expanded
        return os.path.normpath(os.path.join(base or self.project_dir, written))

    def file(self, written: str, where: KeyPath) -> str:
        """A path whose file should be there; without it an agent would have nothing to read."""
        if not written:
            return ""
        path = self.path(written, where)
        if not self.is_file(path):
            self.missing_file(
                where, f"there is no file {path}", "paths are relative to the project directory"
            )
        return path

    def _log_dir_is_its_own(self) -> None:
        """It is made private and filled with files of ours: a home, / or the project is no place for that."""
        where, hint = ("defaults", "log_dir"), 'give it a directory of its own, such as ".ao-state"'
        if not self.defaults["log_dir"]:
            return
        if self.log_dir == self.project_dir:
            self.report.warn(where, "is the project directory itself, which becomes private to you", hint)
        elif os.path.commonpath((self.log_dir, self.project_dir)) == self.log_dir:
            self.report.error(where, f"{self.log_dir} holds the project and whatever is beside it", hint)

    def _rows(self, section: str) -> list[dict[str, Any]]:
        return self.reader.tables(section, self.document.get(section, []), (section,))

    def _agent(self, row: dict[str, Any], index: int) -> Member:
        where: KeyPath = ("agent", index)
        written = _written(self.document["agent"][index])
        for name, key in BY_SECTION["agent"].items():
            if key.inherited and name not in written:
                row[name] = self.defaults[name]
        if "env" in written:
            row["env"] = tuple((dict(self.defaults["env"]) | dict(row["env"])).items())
        self._prompt_is_clear(row, written, where)
        self._backend_exists(row, written, where)
        row["watch"] = self._watch(row, written)
        row["wake"] = self._wake(row["wake"], (*where, "wake"))
        row["prompt_file"] = self.file(row["prompt_file"], (*where, "prompt_file"))
        if row["clone"] and not re.match(_REMOTE, row["clone"]):
            row["clone"] = self.path(row["clone"], (*where, "clone"))
        return self._member(row, where)

    def _service(self, row: dict[str, Any], index: int) -> Member:
        return self._member(row | {"kind": "service", "backend": ""}, ("service", index))

    def _member(self, row: dict[str, Any], where: KeyPath) -> Member:
        """What all of them have: a session, a directory, perhaps a file of variables."""
        row["session"] = row["session"] or self.prefix + row["name"]
        row["dir"] = self.path(row["dir"], (*where, "dir"))
        row["env_file"] = self.path(row["env_file"], (*where, "env_file")) if row["env_file"] else ""
        return Member(**row)

    def _backend_exists(self, row: dict[str, Any], written: dict[str, Any], where: KeyPath) -> None:
        name: str = row["backend"]
        backend = self.backends.get(name)
        if backend is not None:
            if not backend.supports_resume and "resume" not in {*written, *self._written_defaults}:
                row["resume"] = False
            if row["resume"] and not backend.supports_resume:
                said = f'has no effect: the backend "{name}" cannot resume'
                self.report.warn((*where, "resume"), said, "set supports_resume there, or drop it")
        elif name:
            said = f'there is no backend "{name}", neither here nor shipped'
            self.report.error((*where, "backend"), said, did_you_mean(name, self.backends.known()))
        elif not self._written_defaults.get("backend"):
            hint = 'set it here or as [defaults] backend = "claude"'
            self.report.error((*where, "backend"), "the agent has no backend", hint)

    def _watch(self, row: dict[str, Any], written: dict[str, Any]) -> Watch:
        """A task that inherited heal would run again and again, so only its own word counts."""
        inherited = row["watch"] if row["kind"] != "task" or "watch" in written else ""
        return cast("Watch", inherited or _WATCH_BY_KIND[row["kind"]])

    def _wake(self, raw: Any, where: KeyPath) -> Wake | None:
        if raw is None:
            return None
        row = self.reader.table("agent.wake", raw, where)
        return Wake(row["interval"], self.file(row["prompt_file"], (*where, "prompt_file")))

    def _prompt_is_clear(self, row: dict[str, Any], written: dict[str, Any], where: KeyPath) -> None:
        if row["prompt"] and row["prompt_file"]:
            self.report.error((*where, "prompt"), "prompt and prompt_file are both set", "keep one of them")
        if row["kind"] == "loop":
            for key in ("prompt", "prompt_file"):
                if row[key]:
                    self.report.warn(
                        (*where, key),
                        "has no effect: a loop agent's prompt is made from "
                        "kickoff_template and its role file",
                    )
        elif row["role"] and "kind" not in written:
            self.report.warn(
                (*where, "role"),
                "is set, but the agent is not part of the loop",
                'write kind = "loop", or kind = "persistent" to say that you mean it',
            )

    def _names_are_unique(self, agents: tuple[Member, ...], services: tuple[Member, ...]) -> None:
        """File systems and people do not tell A from a, so neither may two names."""
        names = {WATCHDOG: "the supervisor itself"}
        sessions = {f"{self.prefix}{WATCHDOG}".lower(): "the supervisor itself"}
        for section, members in (("agent", agents), ("service", services)):
            for index, member in enumerate(members):
                if not member.name:
                    continue  # missing or faulty: already reported
                place = f"{section}[{index}]"
                if len(member.session) > SESSION_LENGTH:
                    said = f'the session "{member.session}" is longer than {SESSION_LENGTH} characters'
                    self.report.error((section, index, "name"), said, "shorten the prefix or the name")
                for key, word, taken in (("name", member.name, names), ("session", member.session, sessions)):
                    owner = taken.setdefault(word.lower(), place)
                    if owner != place and (key == "name" or names[member.name.lower()] == place):
                        self.report.error(
                            (section, index, key),
                            f'"{word}" is already taken by {owner}',
                            "names and sessions are unique, whatever their case",
                        )

    def _notify_is_whole(self, row: dict[str, Any], index: int) -> None:
        if row["to"] == "command" and not row["command"]:
            self.report.error(("notify", index, "command"), 'is required when to = "command"')
        if row["to"] == "url" and not row["url_env"]:
            self.report.error(("notify", index, "url_env"), 'is required when to = "url"')


def _written(raw: Any) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}
