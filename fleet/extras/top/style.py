"""How it looks. Signs and words carry the meaning; colour only helps."""

from __future__ import annotations

from rich.style import Style

STYLES = {
    "": Style(),
    "title": Style(bold=True, color="#7dd3fc"),
    "name": Style(bold=True),
    "good": Style(color="#4ade80"),
    "calm": Style(color="#cbd5e1"),
    "warm": Style(color="#fbbf24"),
    "bad": Style(color="#f87171", bold=True),
    "soft": Style(color="#7c8aa0"),
}
CURSOR = Style(bgcolor="#1e3a5f")
UNSEEN_CURSOR = Style(reverse=True)  # where there is no colour

CSS = """
Screen { background: #0b1220; color: #e2e8f0; layout: vertical; overflow: hidden; }
#head { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 1; background: #16213a; }
#phases { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 1; }
#problems { height: auto; max-height: 4; padding: 0 1; background: #2a1215; }
#problems, #columns { text-wrap: nowrap; text-overflow: ellipsis; }
#columns { height: 1; }
#roster { height: auto; max-height: 40%; min-height: 1; scrollbar-size-vertical: 1; }
#filter { height: 3; border: round #334155; background: #0b1220; }
#pane { height: 1fr; min-height: 3; border: round #334155; border-title-color: #7dd3fc; }
#screen { height: auto; text-wrap: nowrap; text-overflow: clip; }
#stream { height: 25%; min-height: 3; max-height: 12; border: round #334155; border-title-color: #7c8aa0; }
#events { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
#keys { height: 1; background: #16213a; }
ModalScreen { align: center middle; background: #000000 50%; }
.box { width: 70%; height: auto; padding: 1 2; border: round #7dd3fc; background: #16213a; }
.page { width: 92%; height: 90%; padding: 0 1; border: round #7dd3fc; background: #0f1a2e; }
Toast { background: #16213a; }
"""
