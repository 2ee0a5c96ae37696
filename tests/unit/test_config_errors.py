"""Every fault is told with its place, what was expected and what to do; all of them at once."""

from __future__ import annotations

import os

import pytest

from fleet import config
from fleet.config import ConfigError
from tests.unit.test_config import HEAD, PROFILES, fixture, parse

LOOP = '[loop]\nkickoff_template = "k"\nphases = [{ id = "p", plan = "p", status = "s" }]\n'
PHASE = '[[loop.phases]]\nid = "p"\nplan = "p"\nstatus = "s"\n'
AGENT = '[[agent]]\nname = "a"\n'
WORKER = '[[agent]]\nname = "w"\nkind = "loop"\nrole = "r"\n'
TASK = '[[agent]]\nname = "t"\nkind = "task"\n'

# text after HEAD (four lines), the line and key of the fault, words of what is said
FAULTS = [
    # the required two, and the prefix
    ('[defaults]\nlog_dir = "l"', 1, "defaults.session_prefix", "is required"),
    ('[defaults]\nsession_prefix = "x"', 1, "defaults.log_dir", "is required"),
    ('[defaults]\nsession_prefix = ""\nlog_dir = "l"', 2, "defaults.session_prefix", "letter or digit"),
    ('[defaults]\nsession_prefix = "a.b"\nlog_dir = "l"',
     2, "defaults.session_prefix", 'tmux turns them into "_"'),
    ('[defaults]\nsession_prefix = "a:b"\nlog_dir = "l"',
     2, "defaults.session_prefix", 'tmux turns them into "_"'),
    ('[defaults]\nsession_prefix = "-a"\nlog_dir = "l"', 2, "defaults.session_prefix", "letter or digit"),
    ('[defaults]\nsession_prefix = "#{pid}"\nlog_dir = "l"', 2, "defaults.session_prefix", "letter or digit"),
    ('[defaults]\nsession_prefix = "x"\nlog_dir = ""', 3, "defaults.log_dir", "must not be empty"),
    ('[defaults]\nsession_prefix = 3\nlog_dir = "l"',
     2, "defaults.session_prefix", "expected a string, got a number (3)"),
    ('[defaults]\nsession_prefix = "x"\nlogdir = "l"', 1, "defaults.log_dir", 'did you mean it by "logdir"?'),
    (HEAD + 'tmux_socket = "a/b"', 5, "defaults.tmux_socket", "not a path"),
    (HEAD + 'tmux_socket = "-x"', 5, "defaults.tmux_socket", "must be a name"),
    (HEAD + 'project_dir = "a\\nb"', 5, "defaults.project_dir", "line break"),
    (HEAD + 'project_dir = "~nobody-at-all/x"',
     5, "defaults.project_dir", "home directory that is not known"),
    (HEAD + 'watch = "heel"', 5, "defaults.watch", 'did you mean "heal"?'),
    # types
    (HEAD + "[watchdog]\nsignal_interval = 0", 6, "watchdog.signal_interval", "must be greater than 0"),
    (HEAD + "[watchdog]\nsignal_interval = -1", 6, "watchdog.signal_interval", "must be greater than 0"),
    (HEAD + "[watchdog]\nheavy_interval = true", 6, "watchdog.heavy_interval", "got a boolean (true)"),
    (HEAD + "[watchdog]\nheavy_interval = nan", 6, "watchdog.heavy_interval", "at most 1000000000"),
    (HEAD + "[watchdog]\nheavy_interval = inf", 6, "watchdog.heavy_interval", "at most 1000000000"),
    (HEAD + "[watchdog]\nheavy_interval = 1" + "0" * 400, 6, "watchdog.heavy_interval", "at most 1000000000"),
    (HEAD + "[watchdog]\nheavy_interval = 1979-05-27", 6, "watchdog.heavy_interval", "got a date or time"),
    (HEAD + "[watchdog]\nstall_grace = -0.5", 6, "watchdog.stall_grace", "must not be negative"),
    (HEAD + '[watchdog]\nlog_tokens = "yes"', 6, "watchdog.log_tokens", "expected true or false"),
    (HEAD + AGENT + 'env = { B = "x", A = 1 }', 7, "agent[0].env.A", "expected a string, got a number (1)"),
    (HEAD + AGENT + 'env = {\n  B = "x",\n  A = 1\n}', 9, "agent[0].env.A", "expected a string"),
    (HEAD + AGENT + 'env_pass = ["A", ["B"]]', 7, "agent[0].env_pass[1]", "expected a string, got a list"),
    (HEAD + AGENT + 'env = { "A-B" = "1" }', 7, "agent[0].env", '"A-B" cannot be the name'),
    (HEAD + AGENT + 'env_pass = ["A", "1B"]', 7, "agent[0].env_pass", '"1B" cannot be the name'),
    (HEAD + AGENT + 'env_pass = ["*"]', 7, "agent[0].env_pass", "cannot be the name"),
    (HEAD + AGENT + 'env_pass = ["A*B"]', 7, "agent[0].env_pass", "cannot be the name"),
    (HEAD + AGENT + 'env = { "" = "1" }', 7, "agent[0].env", "cannot be the name"),
    (HEAD + AGENT + 'env_pass = "A"', 7, "agent[0].env_pass", "expected a list of strings"),
    (HEAD + AGENT + 'model = "a\\u0000b"', 7, "agent[0].model", "NUL"),
    (HEAD + AGENT + 'dir = "a\\u0000b"', 7, "agent[0].dir", "NUL"),
    (HEAD + AGENT + 'dir = "a\\nb"', 7, "agent[0].dir", "line break"),
    (HEAD + AGENT + "dir = {}", 7, "agent[0].dir", "expected a path (a string), got a table"),
    (HEAD + '[agent]\nname = "a"', 5, "agent", "write [[agent]]"),
    ("agent = 3\n" + HEAD, 1, "agent", "expected a list of tables, got a number (3)"),
    ("agent = [3]\n" + HEAD, 1, "agent[0]", "expected a table, got a number (3)"),
    ("backend = 3\n" + HEAD.replace('backend = "demo"\n', ""), 1, "backend", "write [backend.NAME]"),
    ("loop = 3\n" + HEAD, 1, "loop", "expected a table"),
    ("price = []\n" + HEAD, 1, "price", "expected tables"),
    # names
    (HEAD + '[[agent]]\ndir = "x"', 5, "agent[0].name", "is required"),
    (HEAD + '[[agent]]\nname = "a.b"', 6, "agent[0].name", "tmux turns them"),
    (HEAD + '[[agent]]\nname = "a b"', 6, "agent[0].name", "letters, digits"),
    (HEAD + '[[agent]]\nname = "é"', 6, "agent[0].name", "letters, digits"),
    (HEAD + '[[agent]]\nname = "a\\n"', 6, "agent[0].name", "letters, digits"),
    (HEAD + '[[agent]]\nname = "../a"', 6, "agent[0].name", "must not contain"),
    (HEAD + f'[[agent]]\nname = "{"a" * 49}"', 6, "agent[0].name", "at most 48"),
    (HEAD.replace("my-", "p" * 48) + f'[[agent]]\nname = "{"a" * 33}"', 6, "agent[0].name", "longer than 80"),
    (HEAD + '[[agent]]\nname = "Watchdog"', 6, "agent[0].name", "taken by the supervisor"),
    (HEAD + '[[service]]\nname = "watchdog"\ncommand = "x"', 6, "service[0].name", "taken by the supervisor"),
    (HEAD + AGENT + '[[agent]]\nname = "A"', 8, "agent[1].name", "already taken by agent[0]"),
    (HEAD + AGENT + '[[service]]\nname = "a"\ncommand = "x"',
     8, "service[0].name", "already taken by agent[0]"),
    (HEAD + AGENT + '[[agent]]\nname = "b"\nsession = "my-A"',
     9, "agent[1].session", "already taken by agent[0]"),
    (HEAD + AGENT + 'session = "MY-watchdog"', 7, "agent[0].session", "taken by the supervisor"),
    (HEAD + AGENT + 'session = "a:b"', 7, "agent[0].session", "tmux turns them"),
    # agents
    (HEAD.replace('backend = "demo"\n', "") + AGENT, 4, "agent[0].backend", "the agent has no backend"),
    (HEAD + AGENT + 'backend = "dmo"', 7, "agent[0].backend", 'did you mean "demo"?'),
    (HEAD + AGENT + 'backend = "../demo"', 7, "agent[0].backend", 'there is no backend "../demo"'),
    (HEAD + AGENT + "backend = 3", 7, "agent[0].backend", "expected a string"),
    (HEAD.replace('"demo"', "3") + AGENT, 4, "defaults.backend", "expected a string"),
    (HEAD + AGENT + 'kind = "lop"', 7, "agent[0].kind", 'did you mean "loop"?'),
    (HEAD + AGENT + 'prompt = "x"\nprompt_file = "y"', 7, "agent[0].prompt", "both set"),
    (HEAD + AGENT + "wake = { interval = 5 }", 7, "agent[0].wake.prompt_file", "is required"),
    (HEAD + AGENT + 'wake = { prompt_file = "w" }', 7, "agent[0].wake.interval", "is required"),
    (HEAD + AGENT + 'wake = { interval = 0, prompt_file = "w" }',
     7, "agent[0].wake.interval", "greater than 0"),
    (HEAD + AGENT + "wake = 5", 7, "agent[0].wake", "expected a table"),
    (HEAD + '[[service]]\nname = "s"', 5, "service[0].command", "is required"),
    (HEAD + '[[service]]\nname = "s"\ncommand = " "', 7, "service[0].command", "must not be empty"),
    (HEAD + '[[service]]\nname = "s"\ncommand = "x"\nwatch = "heal+stall"',
     8, "service[0].watch", "none, heal"),
    # backends
    (HEAD + "[backend.new]\nflags = '-x'", 5, "backend.new.bin", "is required"),
    (HEAD + "[backend.new]\nbin = ''", 6, "backend.new.bin", "must not be empty"),
    (HEAD + '[backend."a b"]\nbin = "x"', 5, 'backend."a b"', "letters, digits"),
    (HEAD + '[backend.new]\ninherits = "bse"', 6, "backend.new.inherits", 'did you mean "base"?'),
    (HEAD + '[backend.x]\ninherits = "y"\n[backend.y]\ninherits = "x"', 8, "backend.y.inherits", "x > y > x"),
    (HEAD + "[backend.demo]\nactive_re = '('", 6, "backend.demo.active_re", "not a valid regular expression"),
    (HEAD + "[backend.demo]\nlimit_re = '*'", 6, "backend.demo.limit_re", "not a valid regular expression"),
    (HEAD + "[backend.demo]\nfatal_re = '[a'", 6, "backend.demo.fatal_re", "not a valid regular expression"),
    (HEAD + "[backend.demo]\nfatal_re = 'a{99999999999}'", 6, "backend.demo.fatal_re", "not a valid regular"),
    (HEAD + '[backend.demo]\nprompt_delivery = "pipe"', 6, "backend.demo.prompt_delivery", "arg, ping, exec"),
    (HEAD + '[backend.demo]\nsubmit_key = "; kill-server"', 6, "backend.demo.submit_key", "not a tmux key"),
    (HEAD + '[backend.demo]\nsubmit_key = ""', 6, "backend.demo.submit_key", "must not be empty"),
    (HEAD + '[backend.demo]\nclear_keys = ["C-c", "-t"]', 6, "backend.demo.clear_keys", "not a tmux key"),
    (HEAD + "[backend.demo]\nstall_idle = 0", 6, "backend.demo.stall_idle", "greater than 0"),
    (HEAD + '[[backend.demo.patterns]]\nname = "x"\nstate = "busy"\nre = "x"',
     7, "backend.demo.patterns[0].state", "working"),
    (HEAD + '[[backend.demo.patterns]]\nname = "x"\nstate = "idle"',
     5, "backend.demo.patterns[0].re", "is required"),
    (HEAD + '[[backend.demo.dialogs]]\nname = "x"\nre = "("',
     7, "backend.demo.dialogs[0].re", "not a valid regular"),
    (HEAD + '[[backend.demo.dialogs]]\nname = "x"\nre = "x"\nkey = "y\\n"',
     8, "backend.demo.dialogs[0].key", "tmux key"),
    (HEAD + 'backend2 = 3\n[backend.demo]\ndialogs = [{ name = "x", re = "x" }, { name = "x", re = "y" }]',
     7, "backend.demo.dialogs[1].name", "already taken"),
    (HEAD + '[[backend.demo.patterns]]\nname = "x"\nstate = "idle"\nre = "x"\nregion = "foot"',
     9, "backend.demo.patterns[0].region", 'did you mean "footer"?'),
    (HEAD + '[backend.demo]\nsignals = ["screen", "hook"]',
     6, "backend.demo.signals[1]", 'did you mean "hooks"?'),
    (HEAD + '[backend.demo]\ntranscript = "claud"', 6, "backend.demo.transcript", 'did you mean "claude"?'),
    (HEAD + '[[backend.demo.patterns]]\nname = "x"\nstate = "limited"\nre = ""',
     8, "backend.demo.patterns[0].re", "must not be empty"),
    (HEAD + '[[backend.demo.dialogs]]\nname = "x"\nre = " "',
     7, "backend.demo.dialogs[0].re", "must not be empty"),
    (HEAD + LOOP + '[loop.handoff]\nclaim_pattern = ""',
     9, "loop.handoff.claim_pattern", "must not be empty"),
    (HEAD + LOOP + '[loop.handoff]\nreview_pattern = ""',
     9, "loop.handoff.review_pattern", "must not be empty"),
    # the log directory
    ('[defaults]\nsession_prefix = "x"\nlog_dir = "/"', 3, "defaults.log_dir", "/ holds the project"),
    ('[defaults]\nsession_prefix = "x"\nlog_dir = ".."', 3, "defaults.log_dir", "/ holds the project"),
    # the loop
    (HEAD + WORKER, 7, "agent[0].kind", "the file has no [loop]"),
    (HEAD + '[[agent]]\nname = "w"\nkind = "loop"\n' + LOOP, 5, "agent[0].role", "needs a role"),
    (HEAD + '[[agent]]\nname = "w"\nkind = "loop"\nrole = "../r"\n' + LOOP,
     8, "agent[0].role", "must not contain a slash"),
    (HEAD + "[loop]\n", 5, "loop.phases", "is required"),
    (HEAD + "[loop]\nphases = []", 6, "loop.phases", "at least one phase"),
    (HEAD + "[loop]\nphases = [1]", 6, "loop.phases[0]", "expected a table, got a number (1)"),
    (HEAD + '[[loop.phases]]\nplan = "p"\nstatus = "s"', 5, "loop.phases[0].id", "is required"),
    (HEAD + '[[loop.phases]]\nid = "a/b"\nplan = "p"\nstatus = "s"', 6, "loop.phases[0].id", "slash"),
    (HEAD + '[[loop.phases]]\nid = "p"\nplan = "p"', 5, "loop.phases[0].status", "is required"),
    (HEAD + '[[loop.phases]]\nid = "p"\nstatus = "s"', 5, "loop.phases[0].plan", "is required"),
    (HEAD + PHASE + '[[loop.phases]]\nid = "p"\nplan = "p"\nstatus = "t"',
     10, "loop.phases[1].id", "already taken by phases[0]"),
    (HEAD + PHASE + '[[loop.phases]]\nid = "q"\nplan = "p"\nstatus = "./s"',
     12, "loop.phases[1].status", "also the status file of phases[0]"),
    (HEAD + LOOP.replace('"s" }', '"s", gates = [{}] }'), 7, "loop.phases[0].gates[0]", "checks nothing"),
    (HEAD + LOOP.replace('"s" }', '"s", gates = [{ run = "x", clean = true }] }'),
     7, "loop.phases[0].gates[0]", "has run and clean"),
    (HEAD + LOOP.replace('"s" }', '"s", gates = [{ run = "x", metric = "m" }] }'),
     7, "loop.phases[0].gates[0].metric", "ratchet"),
    (HEAD + LOOP.replace('"s" }', '"s", gates = [{ run = "x", timeout = 0 }] }'),
     7, "loop.phases[0].gates[0].timeout", "greater than 0"),
    (HEAD + LOOP.replace('"s" }', '"s", models = { r = 1 } }'),
     7, "loop.phases[0].models.r", "expected a string, got a number (1)"),
    (HEAD + LOOP + 'state_file = "../x"', 8, "loop.state_file", "must be a file name"),
    (HEAD + LOOP + 'done_marker = ""', 8, "loop.done_marker", "must not be empty"),
    (HEAD + LOOP + 'done_marker = "a\\nb"', 8, "loop.done_marker", "must be one line"),
    (HEAD + AGENT + LOOP + '[loop.handoff]\nclaim_pings = "b"',
     11, "loop.handoff.claim_pings", '"b" is no agent and no role'),
    (HEAD + AGENT + LOOP + '[loop.handoff]\nreview_pings = ["a",\n "q"]',
     12, "loop.handoff.review_pings[1]", '"q" is no agent'),
    (HEAD + LOOP + '[loop.handoff]\nclaim_pattern = "("',
     9, "loop.handoff.claim_pattern", "not a valid regular expression"),
    (HEAD + LOOP + '[loop.handoff]\nreview_pattern = "["',
     9, "loop.handoff.review_pattern", "not a valid regular expression"),
    (HEAD + LOOP + '[loop.handoff]\ninboxes = ["a", "b", "c"]', 9, "loop.handoff.inboxes", "two sides"),
    (HEAD + LOOP + '[loop.handoff]\nbranch = "--upload-pack=x"', 9, "loop.handoff.branch", "git accepts"),
    (HEAD + LOOP + '[loop.handoff]\nbranch = "a b"', 9, "loop.handoff.branch", "git accepts"),
    (HEAD + AGENT + LOOP + 'on_complete = { trigger_file = "t", run = "a" }',
     10, "loop.on_complete.run", 'no agent of kind "task"'),
    (HEAD + TASK + LOOP + 'on_complete = { trigger_file = "t", run = "x" }',
     11, "loop.on_complete.run", "known: t"),
    (HEAD + TASK + LOOP + 'on_complete = { trigger_file = "../t", run = "t" }',
     11, "loop.on_complete.trigger_file", "under log_dir"),
    (HEAD + TASK + LOOP + 'on_complete = { run = "t" }', 11, "loop.on_complete.trigger_file", "is required"),
    # the rest
    (HEAD + '[[notify]]\non = ["fatal"]', 5, "notify[0].to", "is required"),
    (HEAD + '[[notify]]\nto = "desktop"\non = ["x"]',
     7, "notify[0].on[0]", '"x" is not one of fatal, asking'),
    (HEAD + '[[notify]]\nto = "desktop"\non = ["fatal", "gates"]',
     7, "notify[0].on[1]", 'did you mean "gate"?'),
    (HEAD + '[[notify]]\nto = "email"', 6, "notify[0].to", "is not one of command, desktop, url"),
    (HEAD + '[[notify]]\nto = "url"', 5, "notify[0].url_env", "is required when"),
    (HEAD + '[[notify]]\nto = "command"', 5, "notify[0].command", "is required when"),
    (HEAD + '[[notify]]\nto = "desktop"\nquiet = "late"', 7, "notify[0].quiet", "22:00-07:00"),
    (HEAD + '[[notify]]\nto = "desktop"\nretries = 1.5', 7, "notify[0].retries", "a whole number"),
    (HEAD + '[[notify]]\nto = "url"\nurl_env = "https://x"', 7, "notify[0].url_env", "cannot be the name"),
    (HEAD + '[price."m"]\ninput = 1', 5, "price.m.output", "is required"),
    (HEAD + '[price."m.1"]\ninput = -1\noutput = 1', 6, 'price."m.1".input', "must not be negative"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "key", "words"), FAULTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_fault_is_told_with_file_line_key_and_reason(text, line, key, words):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    problems = [p for p in caught.value.problems if p.key == key]
    assert problems, caught.value.lines()
    said = str(problems[0])
    assert said.startswith(f"/proj/agents.toml:{line}: {key}: ")
    assert words in said


def test_each_fault_of_the_table_stands_alone():
    """One mistake gives one message: nothing is reported twice or as a consequence."""
    for text, *_ in FAULTS:
        with pytest.raises(ConfigError) as caught:
            parse(text)
        assert len(caught.value.problems) == 1, caught.value.lines()


def test_all_faults_come_at_once_in_the_order_of_the_file():
    text = (
        HEAD
        + '[watchdog]\nsignal_interval = 0\n[[agent]]\nname = "a b"\nkind = "x"\n'
        + '[[agent]]\nname = "c"\nbackend = "y"'
    )
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert [(p.line, p.key) for p in caught.value.problems] == [
        (6, "watchdog.signal_interval"),
        (8, "agent[0].name"),
        (9, "agent[0].kind"),
        (12, "agent[1].backend"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "key", "hint"),
    [
        (HEAD + "[watchdog]\nheavy_intervall = 3", 6, "watchdog.heavy_intervall", "heavy_interval"),
        (HEAD + "[watchdgo]\n", 5, "watchdgo", "watchdog"),
        (HEAD + '[[agents]]\nname = "a"', 5, "agents", "agent"),
        (HEAD + 'sesion_prefix = "x"', 5, "defaults.sesion_prefix", "session_prefix"),
        (HEAD + '[[agent]]\nname = "a"\nwake = { intervall = 3, interval = 3, prompt_file = "x" }', 7,
         "agent[0].wake.intervall", "interval"),
        (HEAD + "[backend.demo]\nActive_re = 'x'", 6, "backend.demo.Active_re", "active_re"),
        (HEAD + LOOP.replace('"s" }', '"s", gate = [] }'), 7, "loop.phases[0].gate", "gates"),
        (HEAD + "[backend.demo]\nscreen = { compser = 'x' }", 6, "backend.demo.screen.compser", "composer"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_an_error_when_strict_and_a_warning_elsewhere(text, line, key, hint):  # T06
    told = f'/proj/agents.toml:{line}: {key}: there is no such key (did you mean "{hint}"?)'
    assert told in parse(text).warnings
    with pytest.raises(ConfigError) as caught:
        parse(text, strict=True)
    assert caught.value.lines() == [told]


def test_a_key_of_another_table_is_told_where_it_belongs():
    (told,) = parse(HEAD + "stall_idle = 4").warnings
    assert told.endswith("defaults.stall_idle: there is no such key (it belongs to [backend.NAME])")


@pytest.mark.parametrize(
    ("text", "key", "path"),
    [
        (HEAD + AGENT + 'prompt_file = "p.md"', "agent[0].prompt_file", "/proj/p.md"),
        (
            HEAD + AGENT + 'wake = { interval = 1, prompt_file = "w.md" }',
            "agent[0].wake.prompt_file",
            "/proj/w.md",
        ),
        (HEAD + WORKER + LOOP, "agent[0].role", "/proj/prompts/r.md"),
        (HEAD + LOOP, "loop.kickoff_template", "/proj/k"),
    ],
)
def test_a_missing_prompt_file_is_an_error_when_strict_and_a_warning_elsewhere(text, key, path):
    def all_but(other: str) -> bool:
        return other != path

    assert [key in warning and path in warning for warning in parse(text, is_file=all_but).warnings] == [True]
    with pytest.raises(ConfigError) as caught:
        parse(text, is_file=all_but, strict=True)
    assert [p.key for p in caught.value.problems] == [key]
    assert parse(text, strict=True)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (HEAD.replace(".log", "."), "defaults.log_dir"),
        (HEAD + AGENT + "resume = true", "agent[0].resume"),
        (HEAD + AGENT + 'role = "r"', "agent[0].role"),
        (HEAD + WORKER + 'prompt = "x"\n' + LOOP, "agent[0].prompt"),
        (HEAD + WORKER + LOOP.replace('kickoff_template = "k"\n', ""), "loop.kickoff_template"),
        (HEAD + WORKER + LOOP.replace('"s" }', '"s", models = { rr = "m" } }'), "loop.phases[0].models.rr"),
    ],
)
def test_what_has_no_effect_is_a_warning_even_when_strict(text, key):
    assert [key in warning for warning in parse(text, strict=True).warnings] == [True]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('a = "x\\d"', 1, "a regex is easier in single quotes"),
        ("x = 1\nx = 2", 2, "set twice"),
        ("[a]\n[a]", 2, "opened twice"),
        ("x = yes", 1, "text needs quotes"),
        ("x = True", 1, "lower case"),
        ("[loop]\nhandoff = { repo = 1,\n a = 2\n[agent]\n", 2, "never closed"),
        ("[loop]\nhandoff = {\n repo = 1,\n b c\n}", 4, "write: key = value"),
        ('x = 1\ny = "abc { \n', 2, "close the quote"),
        ("x = [1, 2\ny = 3", 2, "close the list"),
        ("x = " + "[" * 9000, None, "nested too deeply"),
        ("x = " + "9" * 5000, None, "not valid TOML"),
        ("x =", 1, "the file ends where a value is expected"),
        ("x = [1,\n", 1, "close its list with ]"),
        ("\n\nx", 3, "write: key = value"),
        ("x = 2024-02-31", 1, "not valid TOML"),
        ("x = '\x00'", 1, "not valid TOML"),
    ],
)
def test_a_syntax_error_names_its_line_and_the_way_out(text, line, words):  # T02
    with pytest.raises(ConfigError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert problem.line == line
    assert words in str(problem)


def test_an_empty_file_says_what_is_missing():
    with pytest.raises(ConfigError) as caught:
        parse("")
    assert {p.key for p in caught.value.problems} == {"defaults.session_prefix", "defaults.log_dir"}


def _said(path: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    return "\n".join(caught.value.lines())


def test_a_file_that_cannot_be_read_is_said_plainly(tmp_path):
    path = tmp_path / "agents.toml"
    assert "there is no such file (give --config PATH, or run: agents.py init)" in _said(str(path))
    assert f"did you mean {tmp_path}/agents.toml?" in _said(str(tmp_path))
    path.write_text("")
    assert "cannot be read" in _said(str(path / "x"))
    assert "cannot be read" in _said("a\0b")
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in _said(str(tmp_path / "fifo"))
    assert "not a regular file" in _said("/dev/zero")
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    assert f"{path}:2: is not valid UTF-8" in _said(str(path))
    path.write_bytes(b"#" * (256 * 1024 + 1))
    assert "larger than 256 KiB" in _said(str(path))


def test_a_file_of_exactly_the_largest_size_is_read(tmp_path):
    path = tmp_path / "agents.toml"
    text = HEAD + "#"
    path.write_text(text + "#" * (256 * 1024 - len(text)))
    assert config.load(str(path)).session_prefix == "my-"


def test_the_config_is_found_by_name_then_here_then_beside_the_launcher(tmp_path):  # R014, R015, T04
    here, engine, link = tmp_path / "here", tmp_path / "engine", tmp_path / "link"
    here.mkdir()
    engine.mkdir()
    link.symlink_to(engine)

    def find(given=None):
        return config.find(given, str(link), str(here))

    with pytest.raises(ConfigError, match=r"agents\.py init"):
        find()
    (engine / "agents.toml").write_text("")
    assert find() == (str(engine / "agents.toml"), True)
    (here / "agents.toml").symlink_to("dangling")  # broken, but here: never passed over for another
    assert find() == (str(here / "agents.toml"), False)
    assert find("sub/x.toml") == (str(here / "sub/x.toml"), False)
    assert find("/abs/x.toml") == ("/abs/x.toml", False)


def test_a_problem_is_one_line_whatever_it_quotes():
    with pytest.raises(ConfigError) as wrong:
        parse(HEAD + '[[agent]]\nname = "a"\nbackend = "b\\nerror: forged"', strict=True)
    assert len("\n".join(wrong.value.lines()).split("\n")) == len(wrong.value.problems)


def test_of_a_long_list_of_what_is_known_only_the_head_is_shown():
    agents = "".join(f'[[agent]]\nname = "a{n}"\n' for n in range(100))
    with pytest.raises(ConfigError, match=r"a\d+ and 60 more"):
        parse(HEAD + agents + LOOP + '[loop.handoff]\nclaim_pings = "zzzzzz"\n')


@pytest.mark.long
def test_every_prefix_of_a_file_is_a_fleet_or_a_config_error():  # I36
    for name in ("small.toml", "contract.toml"):
        data = fixture(name)
        for cut in range(len(data)):
            _never_a_traceback(data[:cut])


EDITS = ('"', "'", "\n", "[", "]", "{", "}", "=", ".", ",", "#", "\\", "\0", "\x1b", "9", "é", "", "\u2028")


def test_every_single_character_edit_is_a_fleet_or_a_config_error():  # I36
    data = (
        fixture("small.toml") + '[loop]\nhandoff = { repo = ".",\n branch = "x" }\nphases = [{ id = "p" }]\n'
    )
    for at in range(len(data)):
        for edit in EDITS:
            _never_a_traceback(data[:at] + edit + data[at + 1 :])


def test_every_single_byte_edit_is_a_fleet_or_a_config_error(tmp_path):  # I36
    data = fixture("small.toml").encode()
    path = tmp_path / "agents.toml"
    for at in range(len(data)):
        for byte in (0x80, 0xC3, 0xFF):
            path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
            with pytest.raises(ConfigError):
                config.load(str(path))


def _never_a_traceback(text: str) -> None:
    try:
        config.parse(text, "/proj/agents.toml", is_file=lambda _: True, profiles=PROFILES)
    except ConfigError as error:
        assert error.lines()  # noqa: PT017 (either outcome is right)
