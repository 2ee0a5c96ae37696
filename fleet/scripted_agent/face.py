"""A face: how the agent looks. All of it is data in a TOML file, so that another CLI's look needs no code.

`faces/plain.toml` and `faces/tui.toml` are shipped; a script may name a file of its own. Slots in the texts:
{agent} {model} {dir} {glyph} {text} {elapsed} {left} {attempt}, {rule} a line across the screen, {fill} a
line for the rest of the row.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from typing import Any

from fleet.scripted_agent.terminal import wrap
from fleet.text import width

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faces")
DRAFT_ROWS = 12


@dataclass(frozen=True, slots=True)
class Face:
    """Everything that differs between two looks."""

    alternate: bool = False  # draws on the alternate screen
    bottom: bool = False  # the composer sits at the bottom instead of after the text
    bracketed_paste: bool = True
    paste_gap: float = 0.05  # 0: no guessing, Enter is always Enter
    queues: bool = True  # keeps what is submitted while it works; else it is lost
    shell: str = ""  # typed into an empty composer it turns on a mode in which what is submitted is run
    commands: str = ""  # what is submitted and begins with one of these is a command
    hides: str = ""  # characters that the composer does not show
    spinner: str = "|/-\\"
    header: list[str] = field(default_factory=list)
    user: str = "> "
    user_rest: str = "  "
    said: str = ""
    said_rest: str = ""
    tool: str = "$ "
    output: str = "  "
    output_rest: str = "  "
    notice: str = ""
    notice_rest: str = ""
    working: str = ""
    retrying: str = ""
    worked: str = ""
    queued: str = ""
    open: str = ""
    composer: str = "> "
    composer_shell: str = "! "
    composer_rest: str = "  "
    label: str = ""
    close: str = ""
    placeholder: str = ""
    footer: list[str] = field(default_factory=list)
    footer_working: list[str] = field(default_factory=list)
    footer_retrying: list[str] = field(default_factory=list)
    option: str = "  "
    chosen: str = "> "
    hint: str = ""


def load_face(name: str) -> Face:
    """A shipped face by name, or a file by path. Raises ValueError with what is wrong."""
    path = name if "/" in name or name.endswith(".toml") else os.path.join(HERE, f"{name}.toml")
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        shipped = ", ".join(sorted(f.removesuffix(".toml") for f in os.listdir(HERE)))
        raise ValueError(f"face {name!r}: no such file {path} (shipped: {shipped})") from None
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"face {path}: {error}") from error
    known = {f.name: f for f in fields(Face)}
    for key in data:
        if key not in known:
            raise ValueError(f"face {path}: unknown key {key!r}; known: {', '.join(known)}")
    return Face(**data)


@dataclass(slots=True)
class View:
    """What there is to show at this moment."""

    lines: list[str]  # the content, unwrapped
    draft: str = ""
    mode: str = "idle"  # idle, working, retrying, asking, or bare: nothing but the content
    slots: dict[str, Any] = field(default_factory=dict)
    question: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    choice: int = 0
    queue: list[str] = field(default_factory=list)
    footer: list[str] | None = None  # the script's own
    shell: bool = False


@dataclass(slots=True)
class Picture:
    """Rows ready to paint. `hidden` content rows lie above the screen."""

    rows: list[str]
    cursor: tuple[int, int]
    hidden: int
    content: int  # how many of the rows are content


def render(face: Face, view: View, columns: int, height: int) -> Picture:
    """Lay a view out on a screen."""
    content = [row for line in view.lines for row in wrap(line, columns)]
    below, cursor = _below(face, view, columns)
    cut = max(len(below) - height + 1, 0)
    below, cursor = below[cut:], (max(cursor[0] - cut, 0), cursor[1])
    room = max(height - len(below), 1)
    hidden = max(len(content) - room, 0)
    shown = content[hidden:]
    gap = [""] * (room - len(shown)) if face.bottom and view.mode != "bare" else []
    rows = [*shown, *gap, *below]
    top = len(rows) - len(below)
    return Picture(rows[:height], (top + cursor[0], min(cursor[1], columns - 1)), hidden, len(shown))


def _fill(text: str, view: View, columns: int) -> str:
    for key, value in view.slots.items():
        text = text.replace("{" + key + "}", str(value))
    text = text.replace("{rule}", "─" * columns)
    return text.replace("{fill}", "▀" * max(columns - width(text) + len("{fill}"), 0))


def _below(face: Face, view: View, columns: int) -> tuple[list[str], tuple[int, int]]:
    """Status line, composer or dialog, footer; and where the cursor stands in them."""
    if view.mode == "bare":
        return [], (-1, 0)
    rows: list[str] = [""]
    status = {"working": face.working, "retrying": face.retrying}.get(view.mode, "")
    if status:
        rows += [*wrap(_fill(status, view, columns), columns), ""]
    rows += [f"{face.queued}{text}"[:columns] for text in view.queue if face.queued]
    if view.mode == "asking":
        return _dialog(face, view, columns, rows)
    if face.open:
        rows.append(_fill(face.open, view, columns))
    draft = _draft_rows("".join(c for c in view.draft if c not in face.hides), columns - 2)
    start = len(rows)
    first = face.composer_shell if view.shell else face.composer
    for number, text in enumerate(draft or ["" if view.shell else face.placeholder]):
        rows.append((first if number == 0 else face.composer_rest) + text)
    at = start + max(len(draft), 1) - 1
    rows += [_fill(text, view, columns) for text in (face.label, face.close) if text]
    footers = {"working": face.footer_working, "retrying": face.footer_retrying or face.footer_working}
    footer = view.footer if view.footer is not None else footers.get(view.mode) or face.footer
    rows += [_fill(text, view, columns)[:columns] for text in footer]
    return rows, (at, len(face.composer) + (width(draft[-1]) if draft else 0))


def _draft_rows(draft: str, columns: int) -> list[str]:
    rows = [row for line in draft.split("\n") for row in wrap(line, columns)] if draft else []
    return rows[-DRAFT_ROWS:]


def _dialog(face: Face, view: View, columns: int, rows: list[str]) -> tuple[list[str], tuple[int, int]]:
    if face.open:
        rows.append(_fill(face.open, view, columns))
    rows += [row for line in view.question for row in wrap(f" {line}", columns)]
    rows.append("")
    at = len(rows) + view.choice
    for number, text in enumerate(view.options):
        lead = face.chosen if number == view.choice else face.option
        rows.append(f"{lead}{number + 1}. {text}")
    return [*rows, "", face.hint], (at, 1)
