"""What counts as done (R104, R111, T50, I19)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.loop.done import read_done

MARKER = "## DONE"

REAL = {
    "alone": "## DONE",
    "with a line end": "# Status\n\n## DONE\n",
    "trailing white space": "## DONE   \t\n",
    "after other sections": "# S\n## Work\nbuilt\n\n## DONE\nAll gates green.\n",
    "colon and words": "## DONE: all acceptance checks pass",
    "full stop": "## DONE.",
    "exclamation": "## DONE!",
    "dash and date": "## DONE - 2026-05-01",
    "long dash": "## DONE \u2014 verified by the adversary",
    "long dash without a space": "## DONE\u2014verified",
    "words": "## DONE verified at 3f2c1ab",
    "date in parentheses": "## DONE (2026-05-01)",
    "commit in parentheses": "## DONE (at 3f2c1ab9)",
    "closed heading": "## DONE ##",
    "emoji": "## DONE \u2705",
    "windows line ends": "# S\r\n\r\n## DONE\r\nAll green.\r\n",
    "old mac line ends": "# S\r## DONE\rAll green.\r",
    "byte order mark": "\ufeff## DONE\nAll green.",
    "bad bytes elsewhere": b"# S \xff\xfe\n## DONE\nAll \x80 green.\n",
    "a heading of the closed list follows at once": "## DONE\n## Log\nBuilt and reviewed.",
    "a heading and nothing": "## DONE\n\n## Evidence\n",
    "ticked box": "## DONE\n- [x] every test passes\n",
    "words about none": "## DONE\nAll 40 tests pass, none skipped.",
    "nothing is pending": "## DONE\nEverything is merged; nothing is pending.",
    "no open issues": "## DONE\nNo open issues.",
    "todo list is empty": "## DONE\nThe TODO list is empty.",
    "an earlier one was a scaffold": "## DONE\nNot yet.\n\n# Log\n\n## DONE\nAll green at 3f2c1ab.",
    "a code fence was closed": "```\n## example\n```\n## DONE\nAll green.",
    "a comment was closed": "<!-- fill this in\n at the end -->\n## DONE\nAll green.",
    "a comment of one line": "<!-- status -->\n## DONE\nAll green.",
    "an opener in inline code": "Write `<!--` for comments.\n## DONE\nAll green.",
    "output in a fence below": "## DONE\n```\n40 passed\n```",
    "a rule below": "## DONE\n---\nAll green.",
    "a remark in a comment below": "## DONE\n<!-- checked 3f2c1ab -->\nAll green.",
    "may, the month": "## DONE\nMay 3: all green.",
    "a quote below": "## DONE\n> reviewer: PASS",
    "not a single": "## DONE\nNot a single test fails.",
    "a word that also begins a template": "## DONE\nAdd the parser: finished",
    "in details": "<details>\n\n## DONE\nAll hold.\n\n</details>",
    "in details, alone": "<details>\n## DONE\n</details>",
    "in details with a summary": "<details><summary>Status</summary>\n\n## DONE\nAll hold.\n</details>\n",
    "details below": "## DONE\n<details><summary>Output</summary>\n\n42 passed\n</details>",
    "a plain summary": "## DONE\n\nImplemented the lexer and the parser. All 42 tests pass. See 3f2c1ab.\n",
    "a list": "## DONE\n- Lexer: numbers, operators\n- Tests: 42 passed\n- Review: PASS at 9d8e7f6",
    "wrapped": "## DONE\nEvery item of the plan holds, and there are no\nopen issues, the review\nsays.\n",
    "sub-headings": "## DONE\n\n### Evidence\n- `pytest -q`: 42 passed\n\n### Commits\n- 3f2c1ab\n",
    "what the prompts ask for": "## DONE\nEvery item of the plan holds; the review says PASS (3f2c1ab).\n",
    "pytest output": "## DONE\n```\nt_a.py .. [ 50%]\nt_b.py .. [100%]\n42 passed, 1 skipped in 1s\n```",
    "failures none": "## DONE\nFailures: 0. Remaining: none. TODO: nothing.",
    "zero failures": "## DONE\n42 passed, 0 failed, 0 errors",
    "nothing left": "## DONE\nNothing is left to do.",
    "no known bugs": "## DONE\nNo known bugs remain; no errors, failures or regressions.",
    "without errors": "## DONE\nBuilds without errors.",
    "fixed": "## DONE\nFixed the failing test and two bugs.",
    "all issues resolved": "## DONE\nAll issues resolved.",
    "never fails": "## DONE\nThe suite never fails.",
    "does not crash": "## DONE\nIt doesn't crash; all inputs are handled.",
    "error handling": "## DONE\nError handling and error messages are covered by tests.",
    "left associative": "## DONE\n`-` is left-associative; all tests pass.",
    "full fractions": "## DONE\n12/12 items hold, 5 of 5 probes pass, 100% done.",
    "coverage": "## DONE\nAll tests pass with 94% coverage.",
    "phase number": "## DONE\nPhase 1 of 3 is complete.",
    "ticked boxes": "- [x] lexer\n- [X] parser\n\n## DONE\n- [x] all of it\n",
    "a ticked heading": "## DONE [x]",
    "good signs": "## DONE \u2705 \U0001f389\nAll hold \u2714\ufe0f",
    "a table": "## DONE\n| item | result |\n|---|---|\n| lexer | holds |\n| parser | holds |",
    "a link": "## DONE\nReviewed: [PASS](https://example.org/x?y=1).",
    "code with odd words": "## DONE\n`if not x: raise Failure` is implemented.",
    "front matter that is fine": "---\nphase: p1\nstatus: done\n---\n## DONE\nAll hold.",
    "an emptied list of work": "## TODO\nNothing.\n\n## In progress\n- none\n\n## DONE\nAll hold.",
    "a heading TODO without anything": "## TODO\n\n## DONE\nAll hold.",
    "criteria above": "## DONE criteria\n- every test passes\n\n## DONE\nAll hold.",
    "withdrawn, then done again": "## DONE\nAll.\n\n## REOPENED\nBug.\n\n## DONE\nAll hold at 3f2c1ab.",
    "text above that is not done": "# Status\nClaimed, in review. Parser still open.\n\n## DONE\nAll hold.",
    "date and time": "## DONE (2026-05-01 12:30 UTC)",
    "at a commit": "## DONE at 3f2c1ab",
    "ready for the next phase": "## DONE\nAll merged; ready for the next phase.",
    "a comment with evidence": "## DONE <!-- 3f2c1ab -->",
    "bold": "## DONE\n**All items hold.**",
    "exit code 0": "## DONE\n`make test` passes with exit code 0.",
    "a remark after the date": "## DONE (2026-05-01, all tests pass)",
    "the offline examples": "# lex\n\nBuilt.\n\n## DONE\nEvery item of the plan holds; the review says PASS.",
    "the lean example": "# lex\n\n## DONE\nEvery item has its PASS.",
    "the deferred example": "# review\n\n## DONE\nThe review of everything says PASS.",
    "a commit alone": "## DONE\n3f2c1ab\n",
    "evidence with a label": "## DONE\nEvidence: 42 passed at 3f2c1ab (`pytest -q`).",
    "a long report": (
        "## DONE\n\n### Summary\nImplemented `lex()` in src/lexer.py. It supports numbers, operators and"
        " parentheses, and raises LexError with the position.\n\n### Evidence\n```\n$ python -m pytest -q\n"
        "..........                                                  [100%]\n42 passed in 0.12s\n```\n\n"
        "| item | proof |\n|---|---|\n| 1. numbers | test_numbers |\n| 2. position | test_position |\n\n"
        "Review: review(lex): PASS (9d8e7f6).\n"
    ),
}

FALSE = {
    "nothing": "",
    "no marker": "# Status\nworking\n",
    "deeper heading": "### DONE",
    "shallower heading": "# DONE",
    "another word": "## DONE-ish",
    "another word without a dash": "## DONENESS",
    "a file name": "## DONE.md is where it goes",
    "snake case": "## DONE_WHEN",
    "an alternative": "## DONE/NOT DONE",
    "a question": "## DONE?",
    "negated before": "## NOT DONE",
    "lower case": "## done",
    "no space": "##DONE",
    "indented": " ## DONE",
    "indented code": "    ## DONE",
    "quoted": "> ## DONE",
    "in a list": "- ## DONE",
    "in the middle of a line": "write ## DONE at the end",
    "in back quotes": "`## DONE`",
    "in a fence": "```\n## DONE\n```",
    "in a fence with a language": "```markdown\n## DONE\nAll green\n```\n",
    "in a tilde fence": "~~~\n## DONE\n~~~",
    "in a fence that is not closed": "```\n## DONE\n",
    "a shorter fence does not close": "````\n```\n## DONE\n````",
    "a fence with words does not close": "```\n``` text\n## DONE\n```",
    "in a comment": "<!--\n## DONE\n-->",
    "in a comment that is not closed": "<!-- later\n## DONE\n",
    "after a comment on its line": "<!-- x --> ## DONE",
    "being written": "## DON",
    "not yet, below": "## DONE\nNot yet.",
    "not yet, in capitals": "## DONE\nNOT YET",
    "not yet, below a blank line": "## DONE\n\n\nNot yet: review is missing\n",
    "not yet, on the line": "## DONE: not yet",
    "not yet, after a dash": "## DONE \u2014 not yet",
    "not yet, emphasised": "## DONE\n**Not yet**",
    "not yet, slanted": "## DONE\n_Not yet._",
    "not yet, quoted": "## DONE\n> Not yet",
    "not yet, in a list": "## DONE\n- not yet",
    "not yet, in the sentence": "## DONE\nThe phase is not yet complete.",
    "not done": "## DONE\nnot done",
    "isn't done": "## DONE\nIt isn't done.",
    "pending": "## DONE\nPending review",
    "pending on the line": "## DONE pending",
    "tbd": "## DONE\nTBD",
    "todo": "## DONE\nTODO: everything",
    "to do": "## DONE\nto do",
    "n/a": "## DONE\nN/A",
    "none": "## DONE\nNone",
    "none yet": "## DONE\nnone yet",
    "no": "## DONE\nNo.",
    "when": "## DONE when all tests pass",
    "when, below": "## DONE\nWhen the review says PASS.",
    "once": "## DONE\nOnce everything is green",
    "only when": "## DONE\nOnly when every gate passes",
    "angle brackets": "## DONE\n<date and commit>",
    "angle brackets on the line": "## DONE <evidence>",
    "template in parentheses": "## DONE\n(fill in at the end)",
    "template on the line": "## DONE (when complete)",
    "parentheses with a count": "## DONE (2 of 5)",
    "a condition that names a date": "## DONE (when 2026-05-01 has passed)",
    "dots": "## DONE\n...",
    "one dot character": "## DONE\n\u2026",
    "an open box": "## DONE\n- [ ] tests pass",
    "work in progress": "## DONE\nWIP",
    "still to do": "## DONE\nReview still pending.",
    "a comment takes it back": "## DONE <!-- not yet -->",
    "a comment below takes it back": "## DONE\n<!-- write this when all is green -->\n",
    "a fence below takes it back": "## DONE\n```\nnot yet\n```",
    "a form feed makes no column": "x\f## DONE",
    "a line separator makes no column": "x\u2028## DONE",
    "a vertical tab makes no column": "x\v## DONE",
    "a wide character version": "\uff03\uff03 DONE",
    "a hard space": "##\u00a0DONE",
    "sixteen bits": "## DONE".encode("utf-16"),
    "windows line ends and not yet": "## DONE\r\n\r\nNot yet\r\n",
}

# Below `## DONE`.
AGAINST = r"""
Still working on it.|This phase is incomplete.|Work remains.|Cannot mark done until review passes
Tests fail.|Withdrawn after review.|Nothing|- [x] a\n- [ ] b|3/5 items|0%|---\nNot yet.
- lexer\n## TODO\n- parser|\n## REMAINING|All hold.\n\n## REOPENED|All hold.\n\n## DONE\nNot yet
All hold.\n\n## NOT DONE|All hold.\n\n## Next steps\n- parser|All hold.\n\n## In progress\n- parser
All hold.\n\n## Backlog|All hold.\n\n## Parser\n- write it|All hold.\n\n# Phase p1: reopened
All hold.\n\nReopened on 2026-05-02.|All hold.\n\nRe-opened: the parser crashes.
All hold.\n\nREOPENED\n========|All hold.\n\nParser\n======\nyes|All hold.\n\n## DONE?
All hold.\n\n## DONE so far|All hold. Not.|All hold, except the parser.|All tests pass but one.
All tests pass except two.|All done if the review passes.|All done once merged.
All done unless CI disagrees.|All done when the tests pass.|All done after review.
All done, pending review.|Almost all done.|Mostly done.|Nearly complete.|Partially complete.
Partly implemented.|Half done.|Half-done.|Halfway: lexer implemented.|Lexer done, parser next.
Lexer done. Parser to follow.|Lexer done; the parser is still missing.|Lexer done, TODO: parser.
Lexer done, WIP parser.|Lexer done. FIXME: parser|Lexer implemented, parser blocked.
Built, awaiting review.|Built. Waiting for the adversary.|Built and ready for review.|Built, in review.
Built, under review.|Will be done tomorrow.|Should be complete.|Should all pass.|Probably complete.
Maybe complete.|I think everything holds.|Everything seems to pass.|Everything appears to work.
Hopefully complete.|In theory all done.|To be completed.|To be done.|To do: everything|Not all tests pass.
Not every item holds.|No tests pass.|No item holds.|None of the items is complete.|Nothing is finished.
Nothing works.|Never completed.|It isn't complete.|It wasn't finished.|We haven't finished.
Tests don't pass.|Tests do not pass.|Can't complete this.|Unable to complete.|Could not finish.|Failed.
1 failed, 41 passed|2 of 5 done|2 out of 5 items done|Progress: 80%|80 % complete|99.9% done|[50%] done
0 tests passed|0 passed|No tests ran, all done|Complete?|All hold?|Is it complete? Yes.|~~All hold.~~
All ~~tests~~ pass|<del>All hold.</del>|\u274c|All hold \u23f3|All hold \u26a0\ufe0f|\U0001f6a7 all done
\u2610 all done|- [-] all done|- [~] all done|- [ ]|- [x] all\n  - [ ] parser|1. [ ] done|* [ ] done|-
- \n-|1.|...|Done...|All done \u2026|<evidence>|{commit}|Done at <commit>|Done at {commit}|Done at ____
Commit: [hash]|TBD|tbc|t.b.d.|N/A|xxx|Lexer only.|Only the lexer is done.|Just the lexer is done.|Draft.
Draft: all done.|placeholder|Come back later.|Later.|Soon.|Tomorrow.|Lexer|- lexer|lorem ipsum|See above.
Started.|Just started.|Begun.|Paused.|On hold, all built.|Work in progress: all built.|In progress|Ongoing
Reverted: all of it.|All reverted.|Withdrawn.|Retracted: all hold is false.
This was marked done by mistake.|Premature: all done.|Rejected by the reviewer.
Open issues: 3, all else done.|2 open issues, all else done.|Issues not resolved, all built.
No issue is resolved.|Not all issues resolved.|Bugs not fixed.|Two bugs remain; all built.
Everything but the parser is done.|All done so far.|All done for now.|Temporarily done.
Provisionally complete.|Conditionally complete.|Complete, subject to review.|Complete, assuming CI passes.
Complete modulo docs.|As good as done.|All done, follow-up needed.|All done; needs review.
All done, docs need work.|All done; some tests are flaky.|All done, tests are red.|All done. Untested.
Complete but unreviewed.|Complete, unverified.|All done, one gap.|All done, known limitations: parser.
All done with caveats.|Done criteria: all tests pass when run.|Replace this with evidence that all holds.
Fill in: all hold.|(fill in at the end: all hold)|Write this line when all hold.|e.g. all hold
For example: all hold.|> Not yet done.|> [!WARNING]\n> tests fail|```\n1 failed, 41 passed\n```
```\nnot yet\n```|```\n0 passed\n```|<!-- not complete -->|<!-- TODO -->\nAll hold.
All hold.\n<!-- TODO: parser -->|**Not** complete.|_not_ complete|`not yet` complete|N\u200bot complete.
\uff2e\uff4f\uff54 complete.|Don\u2019t advance, all built.|Do not advance: all built.
Stop: all built, parser broken.|Ignore this: all done.|Nope, all done.|Yes and no: all done.
all done (not)|all done/not done|all done -- not yet|all done \u2014 not yet
Everything compiles, tests pending.|Everything is done apart from the docs.
Everything is done aside from the docs.|Everything is done other than the docs.|Items done: some
Most items are done.|A few items are done.|Part of the plan is done.|Part one is done.
All but one item hold.|Item 1 done, item 2 outstanding.|Done, bar the docs.|Done, minus the docs.
Done, save for the docs.|All done, the docs aside.|Done: 3, open: 2.|3 down, 2 to go.
All built; two to go.|All done, I hope.|All done, I guess.|All done, fingers crossed.|Consider it done.
Call it done.|Done-ish.|All done, ish.|All done, kinda.|All done, sorta.|All done, supposedly.
So close: all built.|Getting there: all built.|Nearing completion.|Completing the parser.
Completing this takes a while.|Aim: all tests pass.|Goal: all items hold.|Plan: all done today.
Target: all tests pass.|Want all tests to pass.|All tests must pass.|All tests have to pass.
All tests need to pass.|Let us see that all tests pass.|Make all tests pass.|Ensure that all tests pass.
Check that all tests pass.|Verify that all tests pass.|Wait until all hold.|Blocked: all built.
Dependent on review, all built.|All built, up for review.|All built, review requested.
Claimed, all built, no review yet.|All hold, review outstanding.|All hold; the review says FAIL.
The review says FAIL.|Verdict: FAIL, all built.|All hold; PASS withheld.|All hold, PASS missing.|False
done: false|status: in progress, all built|ready: no, all built|done = no|Complete: no|Finished: false
All done \u2717|All done \u2718|All done :(|Is everything done|Everything done, I am not sure
Everything done, unsure|Everything holds as far as I know.|Everything holds, I believe.
Everything holds, to be confirmed.|Everything holds, TBC.|Everything holds, in my opinion.
Everything holds on my machine.|Everything holds locally.
"""
AFTER = r"""
 so far| criteria| definition| almost| partially| 50%| after review| or not| \u274c| \u23f3|?| ?|: 50%
 - almost| (almost)| (partially)| (2/5)| list| items| tasks| today| this week|/TODO| & TODO| [ ]| [50%]
 soon| next| when|: when reviewed|: TODO| TODO|: lexer|: items|...| ...| \u2026|: not| (not)| NOT
 \u2014 not really| ~~really~~| \u26a0| \U0001f6a7| (WIP)| WIP|: pending| checklist| definition of done
 (definition)| ratio: 3/5| 3/5|: 3 of 5| by Friday|: by Friday| until review|: until review| ever
 or nearly done| except docs|: except docs|, mostly|, except docs| <date>|: <date>| {date}| (date)
 (commit)| YYYY-MM-DD
"""


@pytest.mark.parametrize("text", REAL.values(), ids=REAL.keys())
def test_a_real_marker_counts(text):
    found = read_done(text, MARKER)
    assert found.done, found.why


@pytest.mark.parametrize("text", FALSE.values(), ids=FALSE.keys())
def test_what_only_looks_like_one_does_not_count_and_says_why(text):
    found = read_done(text, MARKER)
    assert not found.done
    assert found.why


def unfolded(text):
    """The rows of such a table; a bar parts them, and what Python escapes is unescaped."""
    rows = [row for line in text.strip("\n").split("\n") for row in line.split("|")]
    return [
        row.replace("\\n", "\n") if "\\u" not in row and "\\U" not in row else unescape(row) for row in rows
    ]


def unescape(row):
    return row.encode("latin-1").decode("unicode_escape")


@pytest.mark.parametrize("body", unfolded(AGAINST))
def test_a_body_with_a_doubt_in_it_takes_the_marker_back(body):
    found = read_done(f"# p1\n\n## DONE\n{body}\n", MARKER)
    assert not found.done
    assert found.why
    assert found.line >= 3


@pytest.mark.parametrize("rest", unfolded(AFTER))
def test_a_line_that_goes_on_as_something_else_is_no_marker(rest):
    found = read_done(f"# p1\n\n## DONE{rest}\nAll hold.\n", MARKER)
    assert not found.done
    assert found.line == 3


@pytest.mark.parametrize("body", unfolded(AGAINST))
def test_what_is_refused_below_the_marker_is_refused_after_other_words_too(body):
    assert not read_done(f"## DONE\nAll items hold at 3f2c1ab.\n\n{body}\n", MARKER).done or _silent(body)


def _silent(body):
    """Refused only because it says nothing: other words may say it."""
    return "says that anything is finished" in read_done(f"## DONE\n{body}\n", MARKER).why


@pytest.mark.parametrize(
    "above",
    [
        "- [ ] parser", "* [ ] parser", "1. [ ] parser", "- [-] parser", "> - [ ] parser",
        "## TODO\n- parser", "## Remaining\nThe parser.", "# In progress\n\n- parser",
        "### Blocked\nby review",
        "---\nstatus: in progress\n---", "---\ndone: false\n---", "---\nstate: draft\n---",
        "## Next steps\n1. parser",
    ],
)  # fmt: skip
def test_work_that_is_open_above_the_marker_stands_against_it(above):
    found = read_done(f"{above}\n\n## DONE\nAll hold.\n", MARKER)
    assert not found.done
    assert "marker on line" in found.why


def test_front_matter_holds_no_marker():
    assert not read_done("---\n## DONE\n---\n# p1\n", MARKER).done


def test_there_are_enough_of_them():
    assert len(REAL) + len(FALSE) + len(unfolded(AGAINST)) + len(unfolded(AFTER)) >= 400


def test_the_line_that_stands_against_it_is_named():
    assert read_done("# S\n\n## DONE\n", MARKER).line == 3
    refused = read_done("# S\n## DONE\nBuilt.\n\n- Tests fail\n", MARKER)
    assert (refused.line, "'fail'" in refused.why, "line 2" in refused.why) == (5, True, True)


def test_any_marker_may_be_declared():
    assert read_done("STATUS: COMPLETE\n", "STATUS: COMPLETE").done
    assert read_done("x\n[done]\n", "[done]").done
    assert not read_done("STATUS: COMPLETED\n", "STATUS: COMPLETE").done
    assert not read_done("anything", "").done


@pytest.mark.parametrize(
    "unit",
    ["red ", "a ", "](", "no the ", "-", "- ", "`", "<", "{", "1 ", "1", "a-a.", "#", "# ", " ", "...",
     "\n", "|", "n't ", "|-", "[ ", "~", "<!--", "0 of ", "fixed the ",
      "none, ", "\u274c", "(", "f" * 7 + " ", "_", "*"],
)  # fmt: skip
def test_a_file_full_of_anything_is_read_in_no_time(unit):
    began = time.process_time()
    for lead in ("## DONE\n", "## DONE ", "# x\n"):
        read_done((lead + unit * 8192)[:8192] + "x\n## DONE\nAll hold.", MARKER)
        read_done((lead + unit * 8192)[:8192] + "x", MARKER)
    assert time.process_time() - began < 5.0


LINE = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), max_size=30)


@given(st.lists(LINE, max_size=12))
def test_text_without_the_marker_at_a_line_start_is_never_done(lines):
    text = "\n".join(
        line if not line.lstrip("\ufeff").startswith("## DONE") else f"x{line}" for line in lines
    )
    assert not read_done(text, MARKER).done


@given(st.lists(LINE, max_size=8), st.sampled_from(["> ", "- ", "    ", "x", "#", "\t", "\u200b"]))
def test_a_marker_that_is_not_at_column_zero_never_counts(lines, lead):
    lines = [line for line in lines if not line.lstrip("\ufeff").startswith("## DONE")]
    assert not read_done("\n".join([*lines, f"{lead}## DONE", *lines]), MARKER).done


@given(st.lists(LINE, max_size=8), st.sampled_from(["```", "~~~", "````"]))
def test_nothing_between_fences_counts(lines, fence):
    inner = [line for line in lines if "`" not in line and "~" not in line]
    assert not read_done("\n".join([fence, *inner, "## DONE", "All green", fence]), MARKER).done


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(data):
    assert read_done(data, MARKER).done in {True, False}


@given(st.text(max_size=200), st.integers(0, 30))
def test_a_file_cut_short_before_its_marker_is_not_done(before, cut):
    safe = before.replace("#", "")
    text = f"{safe}\n## DONE"
    assert not read_done(text[: len(safe) + 1 + min(cut, 6)], MARKER).done
