"""agentlog: what agents said and did, readable; and what it took, in tokens.

    agentlog.py render FILE             a transcript of one of the CLIs, as text or a page
    agentlog.py follow NAME             what an agent of agents.toml says from now on
    agentlog.py follow-all              the same for all agents, into <log_dir>/clean/<name>.log
    agentlog.py list                    which transcripts there are, and whose
    agentlog.py usage PATH...           tokens in any transcripts, every message counted once

`render` and `usage` need no agents.toml. Colour only on a terminal, and never with NO_COLOR. Secrets
are taken out of everything that is shown.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import select
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleet import engine
from fleet.backends.readers import Entry, Wanted, formats
from fleet.text import render as columns
from fleet.text import secret_values
from fleet.times import when
from fleet.tokens.files import conversations, rows_of, sniff, wanted_of
from fleet.tokens.follow import CleanLogs, Follower, file_entries
from fleet.tokens.render import Manner, Renderer, page
from fleet.tokens.totals import jobs_for, own_places, totals_of

if TYPE_CHECKING:
    from fleet.core.model import Fleet

POLL_S = 0.5
BACK = 1 << 18  # how much of what is already there `follow` shows first


class CannotShow(Exception):
    """What was asked cannot be done; the sentence says why and what to do."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0 fine, 1 not as desired, 2 usage or config."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a file's name may be no text at all
    try:
        try:
            args = _arguments(sys.argv[1:] if argv is None else argv)
            code: int = args.run(args)
            return code
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except CannotShow as trouble:
        print(f"error: {engine.spoken(str(trouble))}", file=sys.stderr)
        return trouble.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; that is its right
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as fault:
        print(f"error: {_reason(fault)}", file=sys.stderr)
        return 1


def _reason(fault: Exception) -> str:
    """What a fault is about and what it says."""
    told = getattr(fault, "strerror", None) or str(fault)
    name = getattr(fault, "filename", None)
    return f"{name}: {told}" if name else told


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; --config may stand before the command as well, if both name the same file."""
    parser = build_parser()
    before, rest = argparse.ArgumentParser(add_help=False), list(argv)
    before.add_argument("--config")
    first = next((i for i, word in enumerate(rest) if word in _COMMANDS), 0)
    given, odd = before.parse_known_args(rest[:first])
    args = parser.parse_args([*odd, *rest[first:]])
    after = getattr(args, "config", None)
    if given.config and after and os.path.abspath(given.config) != os.path.abspath(after):
        parser.error(f"--config was given twice: {given.config} and {after}")
    args.config = after or given.config
    return args


_COMMANDS = ("render", "follow", "follow-all", "list", "usage")


def build_parser() -> argparse.ArgumentParser:
    """The command line, as `--help` shows it."""
    parser = argparse.ArgumentParser(
        engine.AGENTLOG,
        description=engine.spoken(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(prog=engine.AGENTLOG, required=True, metavar="COMMAND")
    render = commands.add_parser("render", help="a transcript as text or as a page")
    render.add_argument("file", metavar="FILE")
    render.add_argument("--html", metavar="OUT", help="write a self-contained page instead")
    follow = commands.add_parser("follow", help="what an agent says from now on")
    follow.add_argument("name", metavar="NAME")
    follow_all = commands.add_parser("follow-all", help="all agents, into <log_dir>/clean/<name>.log")
    follow_all.add_argument("--once", action="store_true", help="write what is new and leave")
    listing = commands.add_parser("list", help="which transcripts there are, and whose")
    listing.add_argument("--json", action="store_true")
    usage = commands.add_parser("usage", help="tokens in any transcripts, every message counted once")
    usage.add_argument(
        "paths", metavar="PATH", nargs="*", help="files or directories (default: all CLIs' own)"
    )
    usage.add_argument("--json", action="store_true")
    usage.add_argument("--cost", action="store_true", help="US dollars, by the price table")
    usage.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="processes (default: as many as help)"
    )
    for command, run in (
        (render, _render), (follow, _follow), (follow_all, _follow_all), (listing, _list), (usage, _usage),
    ):  # fmt: skip
        command.set_defaults(run=run)
        if command is not usage:
            command.add_argument("--config", metavar="PATH", help="the fleet's file (default: ./agents.toml)")
    for command in (render, follow, follow_all):
        command.add_argument("--since", metavar="WHEN", help='90m, 8am, "yesterday 22:00", an ISO time')
        command.add_argument("--grep", metavar="REGEX", help="only events that match")
        command.add_argument("--tools", action="store_true", help="what tools got and gave, whole")
        command.add_argument("--thinking", action="store_true", help="thinking too")
    return parser


def _render(args: argparse.Namespace) -> int:
    kind = _kind(args.file)
    renderer = Renderer(_view(args))
    try:
        entries = file_entries(args.file, kind)
        if args.html:
            name = os.path.basename(args.file)
            facts, note = _facts(args.file, kind), f"Transcript: {formats()[kind].called}."
            text = page(entries, renderer, title=name, facts=facts, note=note)
            _write(args.html, text)
            print(f"wrote {args.html}", file=sys.stderr)
        else:
            for line in renderer.lines(entries):
                print(line)
    except ValueError as fault:
        raise CannotShow(f"{args.file}: {fault}") from None
    return 0


def _facts(path: str, kind: str) -> list[tuple[str, str]]:
    """What a transcript took, for the head of its page."""
    used = totals_of([(path, kind)], 1)
    names = ("in", "out", "written to cache", "read from cache")
    sizes = {"tokens": used.total.total, **dict(zip(names, used.total.as_dict().values(), strict=True))}
    facts = [("messages", f"{used.messages:,}"), *((name, f"{size:,}") for name, size in sizes.items())]
    models = list(used.models)
    return [*facts, ("model", models[0]) if len(models) == 1 else ("models", str(len(models)))]


def _kind(path: str) -> str:
    """The format of a file; says what is wrong with one that has none."""
    if not os.path.exists(path):
        raise CannotShow(f"{path}: there is no such file", 2)
    if os.path.isdir(path):
        raise CannotShow(f"{path}: is a directory; give one transcript (`agentlog.py list` shows them)", 2)
    kind = sniff(path)
    shown = {name: one.called for name, one in formats().items() if one.called}
    if kind not in shown:
        *some, last = sorted(shown.values())
        known = f"{', '.join(some)} or {last}"
        raise CannotShow(f"{path}: is no transcript that can be read; expected {known}")
    return kind


def _view(args: argparse.Namespace, *, colour: bool | None = None) -> Manner:
    try:
        pattern = re.compile(args.grep) if args.grep else None
    except re.error as fault:
        raise CannotShow(f"--grep {args.grep}: {fault}; expected a regular expression", 2) from None
    terminal = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    since = parse_since(args.since, time.time()) if args.since else None
    secrets = secret_values(os.environ)
    return Manner(args.tools, args.thinking, since, pattern, terminal if colour is None else colour, secrets)


def parse_since(text: str, now: float) -> float:
    """A moment as a person writes it, as seconds since the epoch."""
    try:
        return when.instant(text, when.Asked.SINCE, now=now)
    except when.Unreadable as fault:
        expected = when.Asked.SINCE.examples
        raise CannotShow(f"--since {text!r}: {fault}; expected a moment {expected}", 2) from None
    except when.NeedsLibrary:
        raise CannotShow(
            f"--since {text!r} needs python-dateutil, which this Python lacks; an age such as 90m or an ISO"
            " time needs no library",
        ) from None


def _fleet(args: argparse.Namespace) -> Fleet:
    from fleet import config

    try:
        path, _ = config.find(args.config, engine.BESIDE, config.here(args.config))
        return config.load(path)
    except config.ConfigError as error:
        raise CannotShow("\n".join(error.lines()), 2) from None


def _wanted(fleet: Fleet) -> tuple[Wanted, ...]:
    return wanted_of(fleet, os.environ, conversations(fleet))


def _follow(args: argparse.Namespace) -> int:
    fleet = _fleet(args)
    if fleet.agent(args.name) is None:
        names = ", ".join(agent.name for agent in fleet.agents)
        raise CannotShow(f"no agent is called {args.name!r}; known: {names}", 2)
    renderer = Renderer(_view(args))

    def tell(name: str, entry: Entry) -> None:
        if name == args.name:
            for line in renderer.lines([entry]):
                print(line)

    follower = Follower(_wanted(fleet), back=BACK)
    while not _reader_left():
        follower.poll(tell)
        sys.stdout.flush()
        time.sleep(POLL_S)
    return 0


def _reader_left() -> bool:
    """Whether the reader of stdout is gone: a follower with nothing to say must not outlive its pipe."""
    watch = select.poll()
    try:
        watch.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError, AttributeError):  # there may be no stdout at all
        return False
    return any(what & (select.POLLERR | select.POLLHUP) for _, what in watch.poll(0))


def _follow_all(args: argparse.Namespace) -> int:
    fleet = _fleet(args)
    logs = CleanLogs(os.path.join(fleet.log_dir, "clean"), _view(args, colour=False))
    while True:
        logs.poll(_wanted(fleet))
        if args.once:
            return 0
        time.sleep(POLL_S)
        fleet = _reload(args, fleet)


def _reload(args: argparse.Namespace, fleet: Fleet) -> Fleet:
    """The file is the truth, also for a follower that runs for days; a broken one changes nothing."""
    try:
        return _fleet(args)
    except CannotShow:
        return fleet


def _list(args: argparse.Namespace) -> int:
    rows = rows_of(_wanted(_fleet(args)))
    if args.json:
        _print_json(rows)
        return 0
    if not rows:
        print("no transcript of any agent was found", file=sys.stderr)
        return 0
    cells = []
    for row in rows:
        written = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["modified"]))
        cells.append((row["agent"], row["kind"], written, f"{row['size']:>13,}", row["path"]))
    for line in columns(("agent", "cli", "last written", f"{'bytes':>13}", "path"), cells):
        print(line)
    return 0


def _usage(args: argparse.Namespace) -> int:
    prices = None
    if args.cost:
        from fleet.tokens.price import PriceBook

        prices = PriceBook()
    missing = [path for path in args.paths if not os.path.exists(path)]
    if missing:
        raise CannotShow(f"{missing[0]}: there is no such file or directory", 2)
    jobs, unread = jobs_for(args.paths or own_places(os.environ))
    if unread and not jobs:
        raise CannotShow(f"{unread[0]}: is no transcript that can be read")
    if not jobs:
        print("no transcript was found", file=sys.stderr)
    gc.disable()  # nothing here is cyclic, and walking a quarter of a million messages to see that costs
    try:
        totals = totals_of(jobs, args.jobs)
    finally:
        gc.enable()
    if args.json:
        _print_json({**totals.document(prices), "unread": unread})
        return 0
    for line in totals.lines(prices):
        print(line)
    for remark in totals.remarks(prices) if prices else ():
        print(remark, file=sys.stderr)
    for path in unread:
        print(f"{path}: is no transcript that can be read", file=sys.stderr)
    return 0


def _print_json(document: Any) -> None:
    """One document; in letters that stdout can spell, because Python's own way to show others is no JSON."""
    spelt = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    print(json.dumps(document, indent=2, ensure_ascii=not spelt))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as handle:
        handle.write(text)
