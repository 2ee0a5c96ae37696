"""Print a tab completion script for bash, zsh or fish.

  bash   source <(agents.py completions bash)
  zsh    source <(agents.py completions zsh)
  fish   agents.py completions fish | source

Completes verbs, their options and the names of your agents.

Example: agents.py completions bash
"""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple

from fleet import engine
from fleet.verbs.arguments import parser_for, positional
from fleet.verbs.fleets import running_fleet
from fleet.verbs.io import Io
from fleet.verbs.main import verbs

GROUP = "set up"


class Follows(NamedTuple):
    """What may follow a verb."""

    options: tuple[str, ...]
    choices: tuple[str, ...]
    names: bool  # takes names of agents and services


ARGUMENTS = (positional("shell", None, choices=("bash", "zsh", "fish", "names"), metavar="bash|zsh|fish"),)


def run(args: argparse.Namespace, io: Io) -> int:
    """Print the script; `names` is what the scripts themselves ask for."""
    if args.shell == "names":
        fleet = running_fleet(args, io)
        names = [m.name for m in fleet.members]
        if args.json:
            io.json(names)
        for name in [] if args.json else names:
            io.print(name)
        return 0
    known = verbs()
    grammar = {verb: words(verb) for verb in known}
    texts = {verb: offer.text for verb, offer in known.items()}
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](grammar, texts)
    if args.json:
        io.json({"shell": args.shell, "script": script})
    else:
        io.write(script)
    return 0


def words(verb: str) -> Follows:
    """Read off the verb's own parser, so that a script cannot promise what the verb does not take."""
    parser = parser_for(verb, importlib.import_module(f"fleet.verbs.{verb}"))
    actions = parser._actions  # noqa: SLF001  argparse has no public way to list them
    options = tuple(word for action in actions for word in action.option_strings if word.startswith("--"))
    places = [action for action in actions if not action.option_strings]
    choices = tuple(str(choice) for action in places for choice in action.choices or ())
    names = any(action.metavar == "NAME" or action.dest in {"name", "names"} for action in places)
    return Follows(options, tuple(c for c in choices if c != "names"), names)


def bash(grammar: dict[str, Follows], texts: dict[str, str]) -> str:
    """A function of plain bash, no completion library needed."""
    cases = "\n".join(
        f'    {verb}) words="{" ".join((*w.options, *w.choices))}"; names={int(w.names)} ;;'
        for verb, w in grammar.items()
    )
    return f"""_agents_py() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= config=() words= names=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      --config) config=(--config "${{COMP_WORDS[i+1]}}"); ((i++)) ;;
      -*) ;;
      *) [ -n "$verb" ] || verb=${{COMP_WORDS[i]}} ;;
    esac
  done
  if [ "$prev" = --config ]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
  case $verb in
    "") words="--config --json --help {" ".join(texts)}" ;;
{cases}
  esac
  if [ "$names" = 1 ]; then
    words="$words $("${{COMP_WORDS[0]}}" "${{config[@]}}" completions names 2>/dev/null)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _agents_py agents.py ./agents.py agents
"""


def zsh(grammar: dict[str, Follows], texts: dict[str, str]) -> str:
    """Zsh runs the bash function through its own compatibility layer."""
    return "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n" + bash(
        grammar, texts
    )


def fish(grammar: dict[str, Follows], texts: dict[str, str]) -> str:
    """One line a fact, as fish likes it."""
    agents = engine.AGENTS
    lines = [f"complete -c {agents} -f", f"complete -c {agents} -l config -r -F -d 'the file of the fleet'"]
    for verb, text in texts.items():
        lines.append(f"complete -c {agents} -n __fish_use_subcommand -a {verb} -d {quoted(text)}")
        when = f"-n '__fish_seen_subcommand_from {verb}'"
        found = grammar[verb]
        lines += [
            f"complete -c {agents} {when} -l {option[2:]}" for option in found.options if option != "--config"
        ]
        lines += [f"complete -c {agents} {when} -a {quoted(choice)}" for choice in found.choices]
        if found.names:
            lines.append(f"complete -c {agents} {when} -a '({agents} completions names 2>/dev/null)'")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A fish string."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
