"""What the scripted adversary does with a claim: probe it, write the findings down, print its verdict.

Prints nothing when every claim has been reviewed. Run in the adversary's own clone, after a pull.
"""

import re
import subprocess
import sys
from pathlib import Path

# Written from the plans, not from the builder's tests. Those for `parse` were written in a hurry: they do not
# see how ^ groups. That is what the gate is for.
PROBES = {
    "lex": [
        "[t.text for t in lex('3.25')] == ['3.25']",
        "[t.at for t in lex(' 1 +2')] == [1, 3, 4]",
        "refused(lambda: lex('1.2.3'), LexError)",
        "refused(lambda: lex('5.'), LexError)",
    ],
    "parse": [
        "parse(lex('1+2*3')) == ('+', 1.0, ('*', 2.0, 3.0))",
        "parse(lex('8-3-2')) == ('-', ('-', 8.0, 3.0), 2.0)",
        "refused(lambda: parse(lex('1+')), ParseError)",
    ],
    "eval": [
        "evaluate('-' * 200 + '1') == 1",
        "refused(lambda: evaluate('1/0'), CalcError)",
        "refused(lambda: evaluate('9^9^9'), CalcError)",
        "refused(lambda: evaluate('9' * 400), CalcError)",
        "refused(lambda: evaluate('(' * 5000 + '1' + ')' * 5000), CalcError)",
    ],
}
MODULES = {"lex": "calc.lexer", "parse": "calc.parser", "eval": "calc.evaluate"}


def refused(call, error):
    try:
        call()
    except error:
        return True
    return False


def probe(phase, expression):
    """What is wrong, in one line; empty when it holds."""
    names = {"refused": refused}
    try:
        exec("from calc.lexer import *", names)
        exec(f"from {MODULES[phase]} import *", names)
        return "" if eval(expression, names) else "it is not so"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def newest_claim():
    """The scope of the newest claim, unless a review is newer."""
    for subject in git("log", "--format=%s", "-200").splitlines():
        found = re.match(r"(claim|review)\(([\w/-]+)\)", subject)
        if found:
            return found[2] if found[1] == "claim" else ""
    return ""


def main():
    scope = newest_claim()
    if not scope:
        return
    sys.path.insert(0, ".")
    phase = scope.partition("/")[0]
    probes = [(name, p) for name in PROBES if phase in {name, "review"} for p in PROBES[name]]
    findings = [f"- expected: {p}\n  found: {said}" for name, p in probes if (said := probe(name, p))]
    verdict = "FAIL" if findings else "PASS"
    head = f"# Review of {scope} at {git('rev-parse', '--short', 'HEAD')}: {verdict}"
    body = "\n".join(findings) if findings else f"All {len(probes)} probes hold."
    Path("machine-docs").mkdir(exist_ok=True)
    Path(f"machine-docs/REVIEW-{phase}.md").write_text(f"{head}\n\n{body}\n", encoding="utf-8")
    print(f"review({scope}): {verdict}, {len(probes) - len(findings)} of {len(probes)} probes hold")


main()
