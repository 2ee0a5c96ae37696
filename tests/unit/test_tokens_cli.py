"""`agents.py tokens`: the table of R042 and its other forms."""

from __future__ import annotations

import csv
import io as streams
import json
import re
import time
from html.parser import HTMLParser

import pytest

from fleet.backends.ledger import Counts
from fleet.backends.readers import Wanted
from fleet.core.model import Price
from fleet.host.disk import RealDisk
from fleet.store.documents import Store
from fleet.tokens import price
from fleet.tokens.books import PhaseMeter
from fleet.tokens.page import report
from fleet.tokens.price import PriceBook
from fleet.tokens.report import agents_of, by_phase, plot, shown
from fleet.tokens.tokenlog import TokenLog, make_record
from fleet.verbs import main
from fleet.verbs.io import Fail, Io
from tests.unit.transcript_samples import claude_line

OPUS = "claude-opus-4-8"
CONFIG = """
[watchdog]
log_tokens = true
[defaults]
session_prefix = "t-"
log_dir = "state"
backend = "claude"
[[agent]]
name = "builder"
kind = "persistent"
prompt = "go"
dir = "a"
"""


def cells(**models):
    return {(model.replace("_", "-"), "2026-11-16"): Counts(*counts) for model, counts in models.items()}


def records(prices=None):
    prices = prices or PriceBook(library=False)
    common = {"limited_s": 0, "shared": {}, "prices": prices}
    lex = {
        "builder": cells(claude_opus_4_8=(10_000, 100, 8, 3_900_010)),
        "adversary": cells(claude_opus_4_8=(3_221_447, 0, 0, 0)),
        "demo": None,
    }
    parse = {"builder": {("mystery", "2026-11-17"): Counts(5, 5, 0, 0)}, "adversary": {}, "demo": None}
    return [
        make_record(run="1", phase="lex", start=0.0, end=372.0, used=lex, **common),
        make_record(run="2", phase="parse", start=372.0, end=782.5, used=parse, **common),
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "agents.toml").write_text(CONFIG)
    (tmp_path / "state" / "state").mkdir(parents=True)
    log = TokenLog(str(tmp_path / "state"), RealDisk())
    for record in records():
        log.write(record)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr(price.PriceBook, "_from_library", lambda self, model: None)
    return tmp_path


def tokens(*words):
    out, err = streams.StringIO(), streams.StringIO()
    code = main.run(["tokens", *words], Io(out, err))
    return code, out.getvalue(), err.getvalue()


def test_the_table_has_phase_duration_a_column_an_agent_and_the_total(project):
    code, out, _ = tokens()
    assert code == 0
    assert out.splitlines() == [
        "phase  dur(s)    builder  adversary  demo      TOTAL",
        "-" * 52,
        "lex     372.0  3,910,118  3,221,447     -  7,131,565",
        "parse   410.5         10          0     -         10",
        "-" * 52,
        "TOTAL   782.5  3,910,128  3,221,447     -  7,131,575",
    ]


@pytest.mark.parametrize(
    ("by", "first"),
    [
        ("agent", ["builder", "10,005", "105", "8", "3,900,010", "3,910,128"]),
        ("model", [OPUS, "3,231,447", "100", "8", "3,900,010", "7,131,565"]),
        ("day", ["2026-11-16", "3,231,447", "100", "8", "3,900,010", "7,131,565"]),
    ],
)
def test_by_agent_model_or_day(project, by, first):
    _, out, _ = tokens("--by", by)
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == [by, "input", "output", "cache_write", "cache_read", "TOTAL"]
    assert lines[2] == first


def test_an_agent_without_a_transcript_is_a_dash_in_every_form(project):
    _, out, _ = tokens("--by", "agent")
    assert ["demo", "-", "-", "-", "-", "-"] in [line.split() for line in out.splitlines()]
    _, out, _ = tokens("--csv")
    assert [row["demo"] for row in csv.DictReader(streams.StringIO(out))] == ["", ""]
    _, out, _ = tokens("--json")
    assert [row["demo"] for row in json.loads(out)["rows"]] == [None, None]


def test_what_is_shared_has_its_own_column_and_is_said_to_be(project):
    used = {"builder": {}, "second": {}}
    shared = cells(claude_opus_4_8=(5, 0, 0, 0))
    record = make_record(
        run="3",
        phase="x",
        start=0.0,
        end=1.0,
        limited_s=0,
        used=used,
        shared=shared,
        prices=PriceBook(library=False),
    )
    log = project / "state" / "token-log.jsonl"
    log.write_text(json.dumps(record) + "\n")
    (project / "agents.toml").write_text(
        CONFIG + CONFIG[CONFIG.index("[[agent]]") :].replace("builder", "second")
    )
    _, out, err = tokens()
    assert out.splitlines()[0].split() == ["phase", "dur(s)", "builder", "second", "(shared)", "TOTAL"]
    assert out.splitlines()[2].split() == ["x", "1.0", "0", "0", "5", "5"]
    assert "(shared): used by builder and second in one directory" in err


def test_csv_is_plain_figures(project):
    rows = list(csv.reader(streams.StringIO(tokens("--csv")[1])))
    assert rows[0] == ["phase", "dur(s)", "builder", "adversary", "demo", "TOTAL"]
    assert rows[1] == ["lex", "372.0", "3910118", "3221447", "", "7131565"]
    assert len(rows) == 3


def test_json_has_rows_records_and_total(project):
    document = json.loads(tokens("--json")[1])
    assert document["total"]["total"] == 7131575
    assert [record["phase"] for record in document["records"]] == ["lex", "parse"]


def test_cost_is_by_the_table_and_an_unknown_model_shows_no_figure(project):
    _, out, err = tokens("--cost")
    lines = [line.split() for line in out.splitlines()]
    dollars = (10_000 * 5 + 100 * 25 + 8 * 6.25 + 3_900_010 * 0.5 + 3_221_447 * 5) / 1e6
    assert lines[0][-1] == "USD"
    assert lines[2][-1] == f"{dollars:.2f}"
    assert lines[3][-1] == "-"
    assert lines[5][-1] == "-", "a sum with an unknown part is unknown"
    assert 'no price is known for mystery; give one as [price."mystery"]' in err
    assert re.search(r"prices: shipped table of \d{4}-\d\d-\d\d", err)


def test_a_price_in_the_config_wins(project):
    text = (
        CONFIG + f'[price."mystery"]\ninput = 1000000\noutput = 0\n[price."{OPUS}"]\ninput = 0\noutput = 0\n'
    )
    (project / "agents.toml").write_text(text)
    document = json.loads(tokens("--cost", "--json")[1])
    assert [row["USD"] for row in document["rows"]] == [0.0, 5.0]
    assert document["cost"] == 5.0
    assert document["unpriced"] == []


def test_live_adds_the_running_phase(project):
    agent = Wanted("builder", "claude", str(project / "a"), env={"HOME": str(project / "home")})
    store = Store(RealDisk(), str(project / "state" / "state"), time.time)
    log = TokenLog(str(project / "state"), RealDisk())
    PhaseMeter(store, log, PriceBook(library=False)).observe("emit", [agent], time.time())
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(project / "a"))
    path = project / "home" / ".claude" / "projects" / slug / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(claude_line(output=994, cwd=str(project / "a")))
    _, out, _ = tokens("--live")
    running = next(line.split() for line in out.splitlines() if "(running)" in line)
    assert (running[0], running[3]) == ("emit", "1,000")
    assert "(running)" not in tokens()[1]


def test_live_without_a_measured_phase_says_so(project):
    assert "no phase is being measured" in tokens("--live")[2]


@pytest.mark.parametrize(("on", "expected"), [(True, "no phase has ended yet"), (False, "log_tokens = true")])
def test_an_empty_log_is_explained(project, on, expected):
    (project / "state" / "token-log.jsonl").unlink()
    (project / "agents.toml").write_text(CONFIG.replace("true", str(on).lower()))
    code, out, err = tokens()
    assert (code, out) == (0, "")
    assert expected in err
    assert json.loads(tokens("--json")[1])["rows"] == []


def test_the_plot_fits_the_terminal_and_scales_to_the_largest(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = tokens("--plot")[1].splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert lines[0] == "lex  372.0s"
    assert any(line.split()[:1] == ["demo"] and line.endswith("-") for line in lines)
    builder = next(line for line in lines if "3,910,118" in line)
    adversary = next(line for line in lines if "3,221,447" in line)
    assert builder.count("█") > adversary.count("█") > 20


def test_the_plot_keeps_to_ascii_where_it_must():
    rows = by_phase(records())
    assert all(line.isascii() for line in plot(rows, agents_of(records()), 80, plain=True))


class Strict(HTMLParser):
    """Fails on tags that do not close in order, and notes everything that would be loaded."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.loads += [(k, v) for k, v in attrs if k in {"src", "href", "srcset", "action"}]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(text):
    page = Strict()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def test_the_page_is_one_file_that_loads_nothing_and_minds_the_dark(project):
    code, _, err = tokens("--html", "report.html")
    assert code == 0
    assert "wrote report.html" in err
    text = (project / "report.html").read_text(encoding="utf-8")
    page = parsed(text)
    assert page.loads == []
    assert not re.search(r"https?://|@import|url\(|<script", text)
    assert "prefers-color-scheme: dark" in text
    assert text.count('class="bars"') == 4
    figures = re.findall(r"<b>demo</b><span>(?:<i.*?</i>)*</span><em>([^<]*)<", text)
    assert figures == ["-"], "an agent without a transcript is a dash here too"
    assert "3,910,118" in "".join(page.text)
    assert "No price is known for mystery" in "".join(page.text)


def test_hostile_names_stay_text_on_the_page():
    bad = '<script>alert("x")</script>&"'
    hostile = {**records()[0], "phase": bad, "agents": {bad: {"models": {bad: {"input": 5}}}}}
    text = report([hostile], PriceBook(library=False), title=bad, note=bad)
    assert "<script" not in text
    assert bad in "".join(parsed(text).text)


def test_a_page_that_cannot_be_written_is_one_sentence(project):
    with pytest.raises(Fail, match="no/such/dir"):
        tokens("--html", "no/such/dir/x.html")


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (OPUS, True),
        ("claude-opus-4-8[1m]", True),
        ("claude-haiku-4-5-20251001", True),
        ("anthropic/claude-opus-4-8", True),
        ("claude-opus-4-88", False),
        ("claude", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_a_price_is_never_guessed(model, known):
    assert (PriceBook(library=False).price(model) is not None) is known


def test_the_shipped_table_is_whole():
    table = PriceBook(library=False)._shipped()
    assert len(table) > 40
    for found in table.values():
        assert found.output > found.input > 0
        assert 0 < found.cache_read <= found.input
        assert found.cache_write >= found.input


def test_the_library_and_the_shipped_table_agree():
    pytest.importorskip("genai_prices")
    library, shipped = PriceBook(), PriceBook(library=False)
    for model in (OPUS, "claude-haiku-4-5", "gpt-5.5"):
        assert library.price(model) == shipped.price(model)
    assert any(source.startswith("genai-prices") for source in library.sources)
    assert library.price("nobody-knows-1") is None


def test_only_a_table_that_gave_a_price_is_named():
    book = PriceBook(library=False)
    assert book.price("mystery") is None
    assert book.sources == set()
    assert book.price(OPUS) is not None
    assert [source.split(" of ")[0] for source in book.sources] == ["shipped table"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.00"),
        (0.004, "<0.01"),
        (0.006, "0.01"),
        (1234.5, "1,234.50"),
    ],
)
def test_what_cost_something_is_never_shown_as_nought(value, text):
    assert shown(value, money=True) == text


def test_no_tokens_cost_nothing_whatever_the_model():
    assert PriceBook([Price("x", 1, 1)], library=False).cost("nobody-knows-1", Counts()) == 0.0


def test_a_record_of_another_writer_is_still_shown():
    """Bare figures per agent, as a plain implementation of the contract would write them."""
    bare = [{"phase": "lex", "duration_s": 372.0, "agents": {"builder": 5, "adversary": None}, "total": 5}]
    [row] = by_phase(bare)
    assert row.counts == Counts(input=5)
    assert row.columns is not None
    assert row.columns["adversary"] is None


@pytest.mark.parametrize(
    "odd",
    [
        {"agents": [1], "days": "x"},
        {"agents": "builder", "days": {"2026-11-16": 5}},
        {"agents": {"builder": [1, 2]}, "days": {"2026-11-16": {"m": [1]}}},
        {"agents": {"builder": {"models": {"m": None}}}, "duration_s": "long", "shared": 5},
        {"agents": None, "days": None, "start": "soon"},
    ],
)
def test_a_record_with_odd_values_breaks_no_form_of_the_report(project, odd):
    with open(project / "state" / "token-log.jsonl", "a") as log:
        log.write(json.dumps({"phase": "odd", **odd}) + "\n")
    by = [["--by", kind] for kind in ("agent", "model", "day")]
    for words in ([], *by, ["--plot"], ["--html", "x.html"]):
        assert tokens(*words)[0] == 0
    assert "odd" in tokens()[1]
    assert json.loads(tokens("--json")[1])["total"]["total"] == 7131575
