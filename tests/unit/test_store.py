"""State survives: kills, damage, full disks, strangers in its place (I20, I35, I41, I43)."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.core.codec import from_plain, to_plain
from fleet.core.desired import NOTHING, Desire, Desired, Hold, Want
from fleet.core.memory import Message
from fleet.core.words import FINAL, MessageKind, MessageState
from fleet.host.clock import RealClock
from fleet.host.disk import RealDisk
from fleet.host.locks import state_lock
from fleet.store import documents as store_module
from fleet.store.documents import Store, StoreError
from fleet.store.outbox import Outbox, OutboxFull
from fleet.store.wishes import DesiredFile
from tests.programs import need
from tests.records import replace
from tests.unit.memory_disk import MemoryDisk

ROOT = Path(__file__).parents[2]
DIR = "/s"
FILE = "/s/fleet.json"


def a_store(disk, **options):
    return Store(disk, DIR, lambda: 1000.5, **options)


def two_generations():
    disk = MemoryDisk()
    store = a_store(disk)
    store.save("fleet", {"n": 1, "name": "before"})
    store.save("fleet", {"n": 2, "name": "ärger \udcff"})
    return disk


def test_what_was_saved_is_loaded_by_the_next_process():
    disk = two_generations()
    assert a_store(disk).load("fleet") == {"n": 2, "name": "ärger \udcff"}


def test_a_document_that_never_was_is_none_and_no_trouble():
    store = a_store(MemoryDisk())
    assert store.load("fleet") is None
    assert store.troubles == []


def test_a_document_costs_two_syncs_however_often_it_is_saved(tmp_path, monkeypatch):
    """The file and its directory; the predecessor's new name is durable with them."""
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = Store(RealDisk(), str(tmp_path), lambda: 1000.5)
    for n in range(3):
        store.save("fleet", {"n": n})
    assert len(synced) == 6
    assert json.loads((tmp_path / "fleet.json.prev").read_text())["data"] == {"n": 1}


def test_the_same_data_again_writes_nothing():
    disk = two_generations()
    store = a_store(disk)
    data = store.load("fleet")
    disk.fail_at, disk.sticky = 1, True
    store.save("fleet", data)
    with pytest.raises(OSError, match="No space"):
        store.save("fleet", {"n": 3})


def test_changing_a_saved_dict_afterwards_is_seen_as_a_change():
    disk = MemoryDisk()
    store = a_store(disk)
    data = {"n": [1]}
    store.save("fleet", data)
    data["n"].append(2)
    store.save("fleet", data)
    assert a_store(disk).load("fleet") == {"n": [1, 2]}


def test_generations_count_on_across_processes():
    disk = two_generations()
    store = a_store(disk)
    store.save("fleet", {"n": 3})
    assert json.loads(disk.files[FILE])["gen"] == 3


def damaged(raw):
    for cut in range(len(raw)):
        yield f"cut at {cut}", raw[:cut]
    for at in range(len(raw)):
        for bit in range(8):
            yield f"bit {bit} of byte {at}", raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :]
        for value in (0x00, 0xFF, 0x20):
            if raw[at] != value:
                yield f"byte {at} = {value}", raw[:at] + bytes([value]) + raw[at + 1 :]
    yield "twice", raw + raw
    yield "zeros", b"\0" * len(raw)
    yield "deep", b"[" * 100000


def test_any_damage_is_set_aside_reported_and_the_predecessor_used():
    good = two_generations()
    for how, raw in damaged(good.files[FILE]):
        disk = two_generations()
        disk.files[FILE] = raw
        store = a_store(disk)
        assert store.load("fleet") == {"n": 1, "name": "before"}, how
        assert len(store.troubles) == 1, how
        assert disk.files[f"{FILE}.corrupt-1000500"] == raw, how
        store.save("fleet", {"n": 9})
        assert a_store(disk).load("fleet") == {"n": 9}, how


def test_damage_to_both_generations_keeps_both_and_gives_none():
    disk = two_generations()
    disk.files[FILE] = b"x"
    disk.files[f"{FILE}.prev"] = b"y"
    store = a_store(disk)
    assert store.load("fleet") is None
    assert sorted(v for k, v in disk.files.items() if "corrupt" in k) == [b"x", b"y"]
    assert len(store.troubles) == 2


def test_saving_without_loading_first_still_sets_damage_aside():
    disk = two_generations()
    disk.files[FILE] = b"precious but broken"
    a_store(disk).save("fleet", {"n": 5})
    assert b"precious but broken" in disk.files.values()


def test_a_document_under_another_name_is_damage():
    disk = two_generations()
    disk.files["/s/other.json"] = disk.files[FILE]
    disk.inodes["/s/other.json"] = 99
    assert a_store(disk).load("other") is None


def test_looking_only_moves_nothing():
    disk = two_generations()
    disk.files[FILE] = b"broken"
    before = dict(disk.files)
    store = a_store(disk, repair=False)
    assert store.load("fleet") == {"n": 1, "name": "before"}
    assert store.troubles
    assert disk.files == before


def test_a_newer_format_is_refused_with_what_to_do_and_left_alone():
    disk = two_generations()
    disk.files[FILE] = store_module._encode("fleet", 99, 1, "{}")
    before = dict(disk.files)
    with pytest.raises(StoreError, match="newer version"):
        a_store(disk).load("fleet")
    assert disk.files == before


def test_an_older_format_is_migrated_step_by_step(monkeypatch):
    monkeypatch.setattr(store_module, "VERSION", 3)
    monkeypatch.setattr(
        store_module, "MIGRATIONS", {1: lambda d: d | {"two": True}, 2: lambda d: d | {"three": d["two"]}}
    )
    disk = MemoryDisk()
    disk._put(FILE, store_module._encode("fleet", 1, 7, '{"n":1}'))
    assert a_store(disk).load("fleet") == {"n": 1, "two": True, "three": True}


@pytest.mark.parametrize("sticky", [False, True])
def test_a_disk_that_refuses_any_operation_leaves_one_of_two_states(sticky):
    """I20, I35: fail the first, the second, ... operation until none is left to fail."""
    for n in range(1, 20):
        disk = two_generations()
        store = a_store(disk)
        old = store.load("fleet")
        disk.fail_at, disk.sticky = n, sticky
        try:
            store.save("fleet", {"n": 3})
            failed = False
        except OSError:
            failed = True
        reached = disk.fail_at == 0 or failed
        disk.fail_at, disk.sticky = 0, False
        fresh = a_store(disk)
        assert fresh.load("fleet") == (old if failed else {"n": 3})
        assert fresh.troubles == []
        store.save("fleet", {"n": 4})  # the same process goes on once there is space again
        assert a_store(disk).load("fleet") == {"n": 4}
        if not reached:
            return
    pytest.fail("the save never got through")


@pytest.mark.parametrize("name", ["", "../x", "a/b/c", "/abs", "a b", ".hidden", "x.json", "a/../b", "a\n"])
def test_names_cannot_leave_the_directory(name):
    with pytest.raises(ValueError):
        a_store(MemoryDisk()).load(name)


def test_bare_files_hold_exactly_what_was_given():
    disk = MemoryDisk()
    store = a_store(disk)
    store.write_text("phase-idx", "3")
    store.write_text("kickoff-p-b.txt", "a\r\nb\n\n\udcff")
    store.write_plain("limited-p-b.json", {"until": 5.0, "since": 1.0, "line": "x", "source": "screen"})
    assert disk.files["/s/phase-idx"] == b"3"
    assert disk.files["/s/kickoff-p-b.txt"] == b"a\r\nb\n\n\xff"
    assert store.read_text("kickoff-p-b.txt") == "a\r\nb\n\n\udcff"
    assert json.loads(disk.files["/s/limited-p-b.json"])["until"] == 5.0
    assert store.read_plain("limited-p-b.json")["source"] == "screen"
    assert store.read_text("nothing") is None


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"7", b"\xff", b"[" * 50000])
def test_a_broken_bare_object_is_set_aside_and_reported(raw):
    disk = MemoryDisk()
    disk._put("/s/limited-x.json", raw)
    store = a_store(disk)
    assert store.read_plain("limited-x.json") is None
    assert store.troubles
    assert raw in disk.files.values()


# The real disk


def killer(kind, where, rounds):
    where.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.store_killer", kind, str(where), str(rounds), "7"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["store", "events", "effects"])
def test_150_kills_at_random_moments_lose_nothing(kind, tmp_path):
    """I20."""
    result = killer(kind, tmp_path / "k", 150)
    assert result["broken"] == 0, result
    assert result["last"] > 150


def test_the_kill_test_bites_a_naive_writer(tmp_path):
    assert killer("naive", tmp_path / "k", 40)["broken"] > 3


def test_modes_are_private_whatever_the_umask(tmp_path):
    """I41."""
    old = os.umask(0)
    try:
        disk, where = RealDisk(), tmp_path / "log" / "state"
        store = Store(disk, str(where), time.time)
        store.save("agents/a", {"n": 1})
        store.save("agents/a", {"n": 2})
        store.write_text("phase-idx", "0")
        disk.append(str(where / "events.jsonl"), b"x\n", sync=True)
        disk.touch(str(where / "heartbeat"))
    finally:
        os.umask(old)
    found = {p.relative_to(tmp_path): stat.S_IMODE(p.lstat().st_mode) for p in tmp_path.rglob("*")}
    assert len(found) == 8
    assert {m for p, m in found.items() if (tmp_path / p).is_dir()} == {0o700}
    assert {m for p, m in found.items() if not (tmp_path / p).is_dir()} == {0o600}


def test_a_directory_of_ours_with_a_loose_mode_is_repaired(tmp_path):
    (tmp_path / "state").mkdir(mode=0o755)
    RealDisk().make_dir(str(tmp_path / "state"))
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_the_mode_of_a_shared_directory_is_left_as_it_is(tmp_path):
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    RealDisk().make_dir(str(shared))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def strangers(path):
    target = path.with_name("target")
    target.write_text("somebody's")
    yield errno.ELOOP, lambda: path.symlink_to(target)
    yield errno.ELOOP, lambda: path.symlink_to(path.with_name("nowhere"))
    yield errno.EMLINK, lambda: path.hardlink_to(target)
    yield errno.EINVAL, lambda: os.mkfifo(path)
    yield errno.EINVAL, path.mkdir


def test_links_pipes_and_directories_are_refused_without_waiting(tmp_path):
    """I43."""
    disk, path = RealDisk(), tmp_path / "file"
    for number, make in strangers(path):
        make()
        acts = [
            lambda: disk.read(str(path)),
            lambda: disk.append(str(path), b"x", sync=False),
            lambda: disk.touch(str(path)),
        ]
        if number != errno.EMLINK:  # replacing one of two names harms nobody
            acts.append(lambda: disk.write(str(path), b"x"))
        for act in acts:
            with pytest.raises(OSError, match=r".") as caught:
                act()
            assert caught.value.errno == number
        assert (tmp_path / "target").read_text() == "somebody's"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["target"]


def test_a_device_is_refused_unopened():
    with pytest.raises(OSError, match="not a regular file"):
        RealDisk().read("/dev/zero")


def test_a_stranger_in_place_of_a_document_is_set_aside(tmp_path):
    store = Store(RealDisk(), str(tmp_path / "s"), time.time)
    store.save("fleet", {"n": 1})
    (tmp_path / "s" / "fleet.json").unlink()
    os.mkfifo(tmp_path / "s" / "fleet.json")
    fresh = Store(RealDisk(), str(tmp_path / "s"), time.time)
    assert fresh.load("fleet") is None
    assert "not a regular file" in fresh.troubles[0]


def test_more_than_the_cap_is_refused(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(OSError, match="larger than 10"):
        RealDisk().read(str(tmp_path / "f"), cap=10)
    assert RealDisk().read(str(tmp_path / "f"), cap=11) == b"x" * 11


def test_an_unreadable_directory_is_an_error_not_an_empty_state(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"."):
        Store(RealDisk(), str(tmp_path / "file"), time.time).load("fleet")


def test_old_temporary_files_go_and_new_ones_stay(tmp_path):
    store = Store(RealDisk(), str(tmp_path), time.time)
    store.save("fleet", {})
    for name, age in ((".fleet.json.aa.tmp", 7200), (".fleet.json.bb.tmp", 5)):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    store.tidy()
    assert {p.name for p in tmp_path.iterdir()} == {"fleet.json", ".fleet.json.bb.tmp"}


@pytest.fixture
def tiny(tmp_path):
    """A file system of a few blocks."""
    where = tmp_path / "tiny"
    where.mkdir()
    need("mount", "umount")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_full_disk_leaves_the_old_state_and_no_litter(tiny):
    """I35."""
    store = Store(RealDisk(), str(tiny / "state"), time.time)
    store.save("fleet", {"n": 1})
    filler = tiny / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * (1 << 20))
    with pytest.raises(OSError, match="No space"):
        store.save("fleet", {"n": 2, "pad": "x" * 9000})
    fresh = Store(RealDisk(), str(tiny / "state"), time.time)
    assert fresh.load("fleet") == {"n": 1}
    assert not [p for p in (tiny / "state").iterdir() if p.name.endswith(".tmp")]
    filler.unlink()
    store.save("fleet", {"n": 3})
    assert Store(RealDisk(), str(tiny / "state"), time.time).load("fleet") == {"n": 3}


# Desired state and requests


def test_desired_state_round_trips():
    wanted = Desired(
        4,
        {
            "a": Desire(Want.UP),
            "b": Desire(Want.DOWN, paused=True),
            "c": Desire(Want.UP, frozen=True, hold=Hold(12, 345, 99.5, "upgrade")),
            "d": Desire(Want.UP, paused=True, until=1.8e9),
        },
    )
    assert from_plain(Desired, json.loads(json.dumps(to_plain(wanted)))) == wanted


@pytest.mark.parametrize("data", [{}, {"generation": 1, "entries": 5}, {"generation": None, "entries": {}}])
def test_something_else_is_not_taken_for_desired_state(data):
    with pytest.raises(ValueError):
        from_plain(Desired, data)


ENDS = {  # entry: (left alone before its end, after it)
    "up": (Desire(Want.UP), False, False),
    "paused": (Desire(Want.UP, paused=True), True, True),
    "paused until 100": (Desire(Want.UP, paused=True, until=100.0), True, False),
    "frozen until 100": (Desire(Want.UP, paused=True, frozen=True, until=100.0), True, False),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_pause_with_an_end_is_over_then(name):
    entry, before, after = ENDS[name]
    assert [entry.left_alone(at) for at in (99.9, 100.0, 101.0)] == [before, after, after]
    desired = Desired(1, {"a": entry})
    ended = before and not after
    assert desired.pauses_over(99.9) == ()
    assert desired.pauses_over(100.0) == (("a",) if ended else ())
    assert desired.end_pauses(["a"], 99.9).entries["a"] == entry
    assert desired.end_pauses(["a", "b"], 100.0).entries == {"a": Desire(Want.UP) if ended else entry}


def test_a_pause_that_is_taken_back_or_made_anew_forgets_its_end():
    first = NOTHING.set(["a", "b"], paused=True, until=100.0)
    assert first.set(["a"], paused=False, frozen=False).set(["a"], paused=True).pauses_over(200.0) == ("b",)
    assert first.set(["a", "b"], paused=True, until=300.0).pauses_over(200.0) == ()


def test_only_an_entry_that_says_up_may_be_healed():
    """T32."""
    wanted = NOTHING.set(["a", "b"], want=Want.UP).set(["b"], want=Want.DOWN)
    assert [wanted.wants_up(n) for n in "abc"] == [True, False, False]
    assert wanted.generation == 2


def test_every_change_is_made_on_what_is_there_and_seen_by_others(tmp_path):
    def opened():
        where = str(tmp_path / "state")
        return DesiredFile(
            RealDisk(), Store(RealDisk(), where, time.time), lambda: state_lock(where, RealClock())
        )

    (tmp_path / "state").mkdir()
    one, two = opened(), opened()
    assert one.load() == NOTHING
    assert not one.changed()
    two.update(lambda d: d.set(["a"], want=Want.UP))
    assert one.changed()
    one.update(lambda d: d.set(["b"], want=Want.DOWN))
    assert two.load().entries == {"a": Desire(Want.UP), "b": Desire(Want.DOWN)}
    assert two.load().generation == 2
    assert not two.changed()


def outbox_of(disk=None, wall=lambda: 50.0):
    return Outbox(disk or MemoryDisk(), DIR, wall)


def message(name, text="hello", **more):
    return Message(name, MessageKind.SEND, text, **more)


def test_a_message_is_one_document_from_the_wish_to_the_receipt():
    disk = MemoryDisk()
    verb, watchdog = outbox_of(disk), outbox_of(disk)
    verb.put("a", message("1"))
    assert [(agent, m.text, m.status) for agent, m in watchdog.news()] == [("a", "hello", "queued")]
    assert watchdog.news() == []
    (waiting,) = watchdog.open_of("a")
    typed = replace(waiting, status=MessageState.TYPED, queued=7.0)
    watchdog.save("a", (typed,))
    assert verb.read("a", "1").status is MessageState.TYPED
    watchdog.save("a", (), (replace(typed, status=MessageState.CONFIRMED, why="it left"),))
    assert (verb.read("a", "1").why, verb.read("a", "1").ended) == ("it left", 50.0)
    after = outbox_of(disk)
    assert (after.open_of("a"), [m.id for m in after.ended_of("a")]) == ((), ["1"])


def test_what_another_process_did_to_the_messages_of_an_agent_is_read_again():
    disk = MemoryDisk()
    watchdog = outbox_of(disk)
    for agent in ("a", "b"):
        watchdog.put(agent, message("1"))
    watchdog.news()
    deputy = outbox_of(disk)
    (waiting,) = deputy.open_of("a")
    deputy.save("a", (), (replace(waiting, status=MessageState.CONFIRMED, why="it left"),))
    deputy.put("b", message("2"))
    watchdog.read_again("a")
    assert (watchdog.open_of("a"), [m.why for m in watchdog.ended_of("a")]) == ((), ["it left"])
    assert [(agent, m.id) for agent, m in watchdog.news()] == [("b", "2")], "what is new to others stays new"


def test_putting_a_message_down_twice_changes_nothing():
    disk = MemoryDisk()
    outbox = outbox_of(disk)
    outbox.put("a", message("claim-1"))
    outbox.save("a", (), (replace(outbox.news()[0][1], status=MessageState.CONFIRMED),))
    outbox_of(disk).put("a", message("claim-1"))
    assert [m.status for _, m in outbox_of(disk).listed()] == ["confirmed"]


def test_when_it_was_taken_in_is_not_worth_a_write():
    disk = MemoryDisk()
    outbox = outbox_of(disk)
    outbox.put("a", message("1"))
    (waiting,) = outbox.open_of("a")
    disk.fail_at, disk.sticky = 1, True
    outbox.save("a", (replace(waiting, queued=9.0),))
    with pytest.raises(OSError, match="No space"):
        outbox.save("a", (replace(waiting, queued=9.0, status=MessageState.TYPED),))


def test_what_a_newer_message_replaced_is_withdrawn():
    outbox = outbox_of()
    outbox.put("a", message("1"))
    outbox.put("b", message("2"))
    outbox.news()
    outbox.save("a", (message("3"),))
    assert {(agent, m.id, str(m.status)) for agent, m in outbox.listed()} == {
        ("a", "1", "withdrawn"), ("a", "3", "queued"), ("b", "2", "queued"),
    }  # fmt: skip


def test_a_withdrawal_is_named_until_it_is_settled():
    disk = MemoryDisk()
    verb, watchdog = outbox_of(disk), outbox_of(disk)
    verb.put("a", message("00-1"))
    verb.withdraw("a", "00-1")
    assert list(watchdog.withdrawals()) == [("a", "00-1")]
    assert [m.id for _, m in watchdog.news()] == ["00-1"]
    watchdog.settle_withdrawal("a", "00-1")
    assert list(watchdog.withdrawals()) == []


@pytest.mark.parametrize("bad", [b"{", b"[]", b"{}", b'{"id": 3}', b"[" * 100_000])
def test_a_document_that_cannot_be_read_is_answered_so(bad):
    disk = MemoryDisk()
    disk._put("/s/outbox/a.00-bad.json", bad)
    outbox = outbox_of(disk)
    assert outbox.news() == []
    assert "could not be read" in outbox.read("a", "00-bad").why
    assert outbox.news() == []


def test_open_messages_and_receipts_are_bounded(monkeypatch):
    monkeypatch.setattr("fleet.store.outbox.OPEN_MAX", 3)
    monkeypatch.setattr("fleet.store.outbox.FINAL_MAX", 20)
    clock = [1e6]
    outbox = outbox_of(wall=lambda: clock[0])
    for number in range(30):
        clock[0] += 1
        outbox.save("a", (), (message(str(number), status=MessageState.CONFIRMED),))
    assert [m.id for _, m in outbox.listed()] == [str(n) for n in range(10, 30)]
    for number in range(3):
        outbox.put("a", message(f"open{number}"))
    with pytest.raises(OutboxFull, match="watchdog"):
        outbox.put("a", message("one too many"))
    clock[0] += 100_000
    outbox.save("b", (), (message("new", status=MessageState.CONFIRMED),))
    assert [m.id for _, m in outbox.listed() if m.status in FINAL] == ["new"]


def test_a_long_text_stays_in_its_document_and_one_that_could_not_be_read_back_is_not_left():
    disk = MemoryDisk()
    outbox = outbox_of(disk)
    outbox.put("a", message("1", "x" * 900_000, tail="xxx"))
    with pytest.raises(OutboxFull, match="less than 1024 KiB"):
        outbox.put("a", message("2", "x" * 1_100_000))
    ((_, taken),) = outbox_of(disk).news()
    assert (taken.text, taken.long, taken.folds) == ("", True, True)
    (waiting,) = outbox.open_of("a")
    outbox.save("a", (replace(waiting, status=MessageState.TYPED),))
    assert len(outbox.text_of("a", "1")) == len(outbox_of(disk).read("a", "1").text) == 900_000
