"""What counts as done (R104, R111, T50, I19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.done import read_done

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
    "a heading follows at once": "## DONE\n## Log\nNot yet anything",
    "blank lines, then a heading": "## DONE\n\n\n# Next\npending\n",
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


@pytest.mark.parametrize("text", REAL.values(), ids=REAL.keys())
def test_a_real_marker_counts(text):
    found = read_done(text, MARKER)
    assert found.done, found.why


@pytest.mark.parametrize("text", FALSE.values(), ids=FALSE.keys())
def test_what_only_looks_like_one_does_not_count_and_says_why(text):
    found = read_done(text, MARKER)
    assert not found.done
    assert found.why


def test_there_are_enough_of_them():
    assert len(REAL) + len(FALSE) >= 60


def test_the_line_of_the_evidence_is_named():
    assert read_done("# S\n\n## DONE\n", MARKER).line == 3
    refused = read_done("# S\n## DONE\nNot yet", MARKER)
    assert (refused.line, "takes it back" in refused.why) == (2, True)


def test_any_marker_may_be_declared():
    assert read_done("STATUS: COMPLETE\n", "STATUS: COMPLETE").done
    assert read_done("x\n[done]\n", "[done]").done
    assert not read_done("STATUS: COMPLETED\n", "STATUS: COMPLETE").done
    assert not read_done("anything", "").done


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
