"""Break the supervisor in every way of the table, in a copy, and see that its test notices.

python -m tests.mutants [WORD...]: only mutants whose names hold one of the words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.table import MUTANTS, Mutant

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPIED = (
    "fleet",
    "tests",
    "pyproject.toml",
    "agents.py",
    "agents.example.toml",
    "prompts",
    "examples",
    "docs",
    "tools",
)


def survives(mutant: Mutant) -> str:
    """Why the mutant got away; empty when its test failed with it and passes without it."""
    with tempfile.TemporaryDirectory(prefix="aotest-mutant-") as copy:
        for name in COPIED:
            source = os.path.join(ROOT, name)
            if os.path.isdir(source):
                shutil.copytree(
                    source, os.path.join(copy, name), ignore=shutil.ignore_patterns("__pycache__")
                )
            elif os.path.exists(source):
                shutil.copy(source, copy)
        path = os.path.join(copy, mutant.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(mutant.old) != 1:
            return f"its text stands {text.count(mutant.old)} times in {mutant.file}"
        sound = _test(mutant, copy)
        if sound.returncode != 0:  # a busy machine may have been to blame
            sound = _test(mutant, copy)
        if sound.returncode != 0:
            return f"{mutant.test} fails without it:\n{(sound.stdout + sound.stderr)[-800:]}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(mutant.old, mutant.new))
        broken = _test(mutant, copy)
        return "" if broken.returncode == 1 else f"{mutant.test} ended with {broken.returncode}"


def _test(mutant: Mutant, where: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutant.test],
        cwd=where,
        env=env | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def main(words: list[str]) -> int:
    """All of them, or those asked for; 1 when one got away."""
    chosen = [m for m in MUTANTS if not words or any(w in m.name for w in words)]
    away = 0
    with ThreadPoolExecutor(2) as pool:
        for mutant, why in zip(chosen, pool.map(survives, chosen), strict=True):
            away += bool(why)
            verdict = f"SURVIVED  {mutant.name}: {why}" if why else f"caught    {mutant.name}"
            print(verdict, flush=True)
    print(f"{len(chosen) - away} of {len(chosen)} mutants caught")
    return 1 if away else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
