"""What the CLIs report of themselves becomes dated signals, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.backends import profiles
from fleet.backends.claude import signals as claude_signals
from fleet.backends.codex import signals as codex_signals
from fleet.backends.opencode import signals as opencode_signals
from fleet.backends.sources import Facts, Heading, Reach, Source, adapters, settings, wanted
from fleet.core.seen import Report, ReportKind

SAMPLES = Path(__file__).resolve().parents[1] / "fixtures" / "signals"
CLAUDE, CODEX, OPENCODE = (profiles.load(name) for name in ("claude", "codex", "opencode"))
K = ReportKind
THREAD = "01a1e1fa-22d5-7da2-b7e1-cf37f550277b"


def heading(backend, *, at=100.0, source="", facts=None, reach=Reach.FILE) -> Heading:
    return Heading(backend, facts or Facts("/home/user/proj/cx1", 0.0), Source("", reach, source), at, "UTC")


def kinds(signals) -> list[str]:
    return [signal.kind.value for signal in signals]


# --- claude -----------------------------------------------------------------------------------------------


def hook(**fields) -> list[Report]:
    return claude_signals.from_hook(heading(CLAUDE), json.dumps(fields).encode())


def test_recorded_hooks_tell_the_session_the_prompt_the_question_and_the_end():
    said = []
    for line in (SAMPLES / "claude-hooks.jsonl").read_text().splitlines():
        row = json.loads(line)
        said += claude_signals.from_hook(heading(CLAUDE, at=row["at"]), json.dumps(row["input"]).encode())
    assert kinds(said) == [
        "exited", "session", "model", "prompt_taken", "asked", "asked", "session", "model", "prompt_taken",
        "turn_ended", "answered", "prompt_taken", "asked", "asked",
    ]  # fmt: skip
    assert said[-1].text == "Claude needs your permission"
    assert said[-1].session_id == "1b54d3f5-1c1c-48d8-8c57-bde99be5f1c3"
    assert [s.text for s in said if s.kind is K.MODEL] == ["claude-opus-4-8[1m]", "claude-sonnet-5"]


@pytest.mark.parametrize(
    ("error", "words", "kind", "until"),
    [
        ("rate_limit", "You've hit your session limit · resets 2026-11-16T04:00Z", K.LIMIT_HIT, 1794801600.0),
        (
            "rate_limit",
            "API Error: Server is temporarily limiting requests (not your usage limit)",
            K.TURN_FAILED,
            None,
        ),
        ("rate_limit", "API Error: Request rejected (429) · per-minute rate limit", K.TURN_FAILED, None),
        ("server_error", "API Error: 529 Overloaded.", K.TURN_FAILED, None),
        ("authentication_failed", "Something new about keys", K.AUTH_FAILED, None),
        ("authentication_failed", "Invalid API key · Fix external API key", K.AUTH_FAILED, None),
        ("invalid_request", "Context limit reached · /compact or /clear to continue", K.CONTEXT_FULL, None),
        ("billing_error", "Credit balance too low · Add funds", K.TURN_FAILED, None),
    ],
)
def test_a_stop_that_failed_says_which_kind_of_failure_it_was(error, words, kind, until):
    (signal,) = hook(hook_event_name="StopFailure", error=error, last_assistant_message=words)
    assert (signal.kind, signal.until) == (kind, until)


def test_a_transcript_gives_the_exact_end_of_a_window_dated_by_its_own_record():
    """A banner without a date is read against the moment it was written, not against now."""
    data = (SAMPLES / "claude-transcript-limits.jsonl").read_bytes()
    said = claude_signals.from_transcript(heading(CLAUDE, at=9e9), data)
    limits = [(s.until, s.text[:30]) for s in said if s.kind is K.LIMIT_HIT]
    assert limits[0] == (1794799500.0, "You've hit your session limit ")  # 04:25 in Berlin that night
    assert limits[1][0] == 1795090500.0
    assert limits[-1][0] == 1798999980.0
    assert kinds(said).count("turn_failed") == 1  # the one that is not the usage limit
    assert kinds(said)[-3:] == ["model", "answered", "turn_ended"]  # the last turn went well


def test_the_transcripts_own_quota_record_beats_the_words():
    record = {
        "type": "assistant", "timestamp": "2026-11-16T03:58:37.997Z", "isApiErrorMessage": True,
        "error": "rate_limit",
        "message": {"content": [{"type": "text", "text": "You've hit your weekly limit · resets Dec 26"}]},
        "quotaLimits": {"status": "rejected", "resetsAt": 1798257501},
    }  # fmt: skip
    (signal,) = claude_signals.from_transcript(heading(CLAUDE), json.dumps(record).encode())
    assert signal.until == 1798257501.0


def test_an_ordinary_transcript_tells_prompts_model_and_ends():
    said = claude_signals.from_transcript(heading(CLAUDE), (SAMPLES / "claude-transcript.jsonl").read_bytes())
    assert {"prompt_taken", "model", "answered", "turn_ended"} == set(kinds(said))
    assert kinds(said).count("prompt_taken") == 4


def test_the_registry_is_believed_only_for_the_very_process_it_names():
    """It outlives a kill -9."""
    data = (SAMPLES / "claude-registry.json").read_bytes()

    def say(*processes):
        return claude_signals.from_registry(
            heading(CLAUDE, facts=Facts("/x", 0.0, processes=processes)), data
        )

    assert kinds(say((17847, 90840))) == ["session", "turn_ended"]
    assert say((17847, 90841)) == []
    assert say((17848, 90840)) == []
    assert say() == []


@pytest.mark.parametrize(
    ("status", "kind"), [("busy", K.TURN_BEGAN), ("waiting", K.ASKED), ("shell", K.TURN_ENDED)]
)
def test_the_registrys_level_is_a_signal_dated_by_its_last_change(status, kind):
    entry = {
        "pid": 5,
        "procStart": "7",
        "status": status,
        "statusUpdatedAt": 1794792974987,
        "waitingFor": "dialog open",
    }
    said = claude_signals.from_registry(
        heading(CLAUDE, facts=Facts("/x", 0.0, processes=((5, 7),))), json.dumps(entry).encode()
    )
    assert (said[-1].kind, said[-1].at) == (kind, 1794792974.987)


def test_hooks_are_asked_for_in_a_settings_file_and_only_where_the_profile_wants_them():
    made = settings(CLAUDE)
    assert set(made) == {"hooks"}
    assert {"Stop", "StopFailure", "UserPromptSubmit", "SessionStart"} <= set(made["hooks"])
    assert settings(CODEX) == {}


def test_the_hook_command_leaves_one_whole_file_and_prints_nothing(tmp_path):
    env = {"PATH": os.environ["PATH"], "AO_SIGNALS": str(tmp_path)}
    text = json.dumps({"hook_event_name": "Stop", "session_id": "s", "odd": "'\"$(touch x)`\n"})
    for shell in ("sh", "bash"):
        done = subprocess.run(
            [shell, "-c", claude_signals.HOOK],
            input=text,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("", "")
    files = list(tmp_path.iterdir())
    assert [file.read_text() for file in files] == [text, text]
    assert all(file.suffix == ".json" and not file.name.startswith(".") for file in files)


def test_the_hook_command_is_silent_where_no_spool_is(tmp_path):
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["sh", "-c", claude_signals.HOOK], input="{}", env=env, capture_output=True, text=True, check=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- codex ------------------------------------------------------------------------------------------------


def test_a_rollout_brackets_every_turn_and_receipts_every_prompt():
    said = codex_signals.from_rollout(heading(CODEX), (SAMPLES / "codex-rollout.jsonl").read_bytes())
    count = kinds(said).count
    assert (count("session"), count("turn_began"), count("prompt_taken")) == (1, 8, 8)
    assert count("turn_ended") + count("limit_hit") + count("turn_failed") + count("auth_failed") == 8
    assert said[0].session_id == THREAD
    assert {s.text for s in said if s.kind is K.MODEL} == {"fake-model"}


def rollout(*events: dict) -> bytes:
    rows = [
        {"timestamp": f"2026-11-16T03:50:5{n}Z", "type": "event_msg", "payload": e}
        for n, e in enumerate(events)
    ]
    return "\n".join(json.dumps(row) for row in rows).encode()


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("You’ve hit your usage limit. Upgrade to Pro or try again at 6:50 AM.", K.LIMIT_HIT),
        ("exceeded retry limit, last status: 429 Too Many Requests", K.TURN_FAILED),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", K.AUTH_FAILED),
        ("Your input exceeds the context window of this model.", K.CONTEXT_FULL),
        ("stream disconnected before completion", K.TURN_FAILED),
    ],
)
def test_a_failed_turn_of_codex_says_why(message, kind):
    data = rollout({"type": "task_started"}, {"type": "task_complete", "error": {"message": message}})
    assert codex_signals.from_rollout(heading(CODEX), data)[-1].kind is kind


def test_the_providers_own_reset_instant_beats_the_words():
    window = {"used_percent": 100.0, "window_minutes": 300, "resets_at": 1794808248}
    failed = {
        "type": "task_complete",
        "error": {"message": "You’ve hit your usage limit. try again at 6:50 AM."},
    }
    used_up = {"type": "token_count", "rate_limits": {"primary": window, "secondary": None}}
    assert codex_signals.from_rollout(heading(CODEX), rollout(used_up, failed))[-1].until == 1794808248.0
    window["used_percent"] = 91.0
    assert codex_signals.from_rollout(heading(CODEX), rollout(used_up, failed))[-1].until == 1794811800.0


def test_a_rollout_belongs_to_a_run_by_thread_or_by_directory_and_time():
    head = (SAMPLES / "codex-rollout.jsonl").read_bytes()
    mine = Facts("/home/user/proj/cx1", 1794792600.0)
    assert codex_signals.claims(head, mine) == THREAD
    assert codex_signals.claims(head, Facts("/home/user/other", 1794792600.0)) == ""
    assert codex_signals.claims(head, Facts("/home/user/proj/cx1", 1794799999.0)) == ""
    assert codex_signals.claims(head, Facts("/elsewhere", 9e9, conversation=THREAD)) == THREAD


def test_an_opening_that_was_cut_in_its_long_first_line_still_says_whose_it_is():
    """The instructions in the first record are longer than anybody reads."""
    head = (SAMPLES / "codex-rollout.jsonl").read_bytes().split(b"\n")[0]
    meta = json.loads(head)
    meta["payload"]["base_instructions"] = {"text": "x" * 50_000}
    assert (
        codex_signals.claims(json.dumps(meta).encode()[:16_384], Facts("/home/user/proj/cx1", 1794792600.0))
        == THREAD
    )


def test_a_known_thread_is_looked_for_on_the_day_it_was_born():
    sources = wanted(CODEX, Facts("/x", 1795000000.0, conversation=THREAD, env={"CODEX_HOME": "/c"}))
    assert sources[0].where == "/c/sessions/2026/11/16"
    assert sources[0].suffix == f"-{THREAD}.jsonl"


def test_only_the_agents_own_thread_may_notify():
    rows = (SAMPLES / "codex-notify.jsonl").read_text().splitlines()
    facts = Facts("/x", 0.0, conversation=THREAD)
    said = [s for row in rows for s in codex_signals.from_notify(heading(CODEX, facts=facts), row.encode())]
    assert said
    assert len(said) < len(rows)
    assert {s.session_id for s in said} == {THREAD}
    nobody = heading(CODEX, facts=Facts("/x", 0.0))  # which thread is the agent's is not known yet
    assert [s for row in rows for s in codex_signals.from_notify(nobody, row.encode())] == []


@pytest.mark.parametrize("words", ["plain", "-n", 'it\'s "so" $(touch pwned) `x` %s \\n', "é漢\nline"])
def test_what_codex_runs_after_a_turn_leaves_one_whole_file_in_the_spool(tmp_path, words):
    spool = tmp_path / "a spool"
    spool.mkdir()
    told = json.dumps({"type": "agent-turn-complete", "thread-id": THREAD, "last-assistant-message": words})
    for where in (spool, tmp_path / "not there"):
        command = [*codex_signals.notify(str(where)), told]
        done = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
        assert done.stdout == done.stderr == b""
    (kept,) = spool.iterdir()
    (place,) = codex_signals.ADAPTERS["notify"].sources(CODEX, Facts("/x", 0.0, signals_dir=str(spool)))
    assert kept.suffix == place.suffix
    facts = Facts("/x", 0.0, conversation=THREAD)
    (signal,) = codex_signals.from_notify(heading(CODEX, facts=facts), kept.read_bytes())
    assert signal.kind is ReportKind.TURN_ENDED


# --- opencode ---------------------------------------------------------------------------------------------


def page(path: str, document, *, conversation="ses_1", at=50.0) -> list[Report]:
    facts = Facts("/w", 10.0, conversation=conversation, server="http://127.0.0.1:4096")
    source = f"http://127.0.0.1:4096{path}"
    return opencode_signals.from_page(
        heading(OPENCODE, at=at, source=source, facts=facts), json.dumps(document).encode()
    )


def test_status_and_permission_together_tell_work_from_a_question():
    """A session stays busy while it asks."""
    assert kinds(page("/session/status", {"ses_1": {"type": "busy"}})) == ["turn_began"]
    (asked,) = page("/permission", [{"id": "per_1", "sessionID": "ses_1", "permission": "bash"}])
    assert (asked.kind, asked.text) == (K.ASKED, "bash")
    assert page("/permission", [{"id": "per_1", "sessionID": "ses_2", "permission": "bash"}]) == []
    assert kinds(page("/session/status", {})) == ["turn_ended"]
    assert kinds(page("/session/status", {"ses_2": {"type": "busy"}})) == ["turn_ended"]


def test_a_retry_of_the_server_names_its_instant():
    status = {"type": "retry", "attempt": 1, "message": "Rate limit reached", "next": 1794802369102}
    (signal,) = page("/session/status", {"ses_1": status})
    assert (signal.kind, signal.until) == (K.RETRYING, 1794802369.102)


def test_the_conversation_is_the_newest_of_this_directory_since_the_start():
    rows = [
        {"id": "old", "directory": "/w", "time": {"created": 5000}},
        {"id": "other", "directory": "/x", "time": {"created": 30000}},
        {"id": "child", "directory": "/w", "parentID": "mine", "time": {"created": 40000}},
        {"id": "mine", "directory": "/w", "time": {"created": 20000}},
    ]
    assert [s.session_id for s in page("/session", rows, conversation="")] == ["mine"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"name": "ProviderAuthError", "data": {"message": "no key"}}, K.AUTH_FAILED),
        (
            {"name": "APIError", "data": {"message": "Incorrect API key provided", "statusCode": 401}},
            K.AUTH_FAILED,
        ),
        ({"name": "APIError", "data": {"message": "boom", "statusCode": 500}}, K.TURN_FAILED),
        ({"name": "ContextOverflowError", "data": {"message": "too long"}}, K.CONTEXT_FULL),
    ],
)
def test_a_failed_message_says_why(error, kind):
    info = {
        "role": "assistant",
        "sessionID": "ses_1",
        "time": {"created": 1000, "completed": 2000},
        "error": error,
    }
    assert page("/session/ses_1/message", [{"info": info, "parts": []}])[-1].kind is kind


def test_only_the_loopback_is_ever_asked():
    assert wanted(OPENCODE, Facts("/w", 0.0, server="http://example.com:4096")) == []
    assert wanted(OPENCODE, Facts("/w", 0.0, server="http://127.0.0.1:4096"))


# --- all --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", adapters())
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b'{"type":"event_msg","timestamp":"2026-11-16T03:50:50Z","payload":']),
)
def test_nothing_a_source_holds_can_break_an_adapter(name, data, lead):
    backend = {"server": OPENCODE, "rollout": CODEX, "notify": CODEX}.get(name, CLAUDE)
    adapters()[name].signals(heading(backend, source="http://127.0.0.1:1/session/status"), lead + data)
