"""Conversations, hooks, and processes that fork, share the file, or end."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import proem
import pytest

BASE: dict[str, Any] = {"profile": "template", "system": "Be brief.", "model": "claude-opus-5"}


@pytest.fixture(params=["memory:", "sqlite:agent.db"])
def store(request: pytest.FixtureRequest) -> Iterator[proem.Store]:
    with proem.open(request.param) as opened:
        yield opened


def test_a_conversation_keeps_its_prompt(store: proem.Store) -> None:
    conversation = store.conversation("c-17", **BASE)
    first = conversation.turn("Hello", provider="anthropic")
    assert (first.epoch, first.reason, first.reused, first.conversation) == (1, "startup", False, "c-17")
    history = [*first.history, {"role": "assistant", "content": "Hi."}]
    next_ = conversation.turn("And now?", messages=history, provider="anthropic")
    assert next_.reused and next_.digest == first.digest and next_.system_prompt == "Be brief."
    assert next_.payload["messages"][: len(history) - 1][0]["role"] == "user"
    assert set(next_.to_dict()) >= {"carriers", "pending", "changes", "expected_miss", "notes", "signature"}
    assert conversation.history()["epochs"][0]["reason"] == "startup"
    assert store.conversations()["conversations"][0]["conversation"] == "c-17"
    assert conversation.remove() and not store.remove("c-17")


def test_changes_open_epochs(store: proem.Store) -> None:
    # The profile has a clock.
    host = {"now": "2026-03-07T14:55:05Z", "timezone": "UTC"}
    tools: list[Any] = [{"name": "read"}, {"name": "bash"}]
    conversation = store.conversation("c", profile="layers", project=False, tools=tools, host=host)
    conversation.turn("Hello")
    assert conversation.set_active_tools(["read"])["opened"]
    assert conversation.set_tool_registry([{"name": "read"}, {"name": "edit"}])["epoch"] == 3
    assert conversation.plan_tools([])["plan"]["tools_changed"]
    assert conversation.diff(1, 2)["carriers"]
    assert conversation.epoch(2, provider="anthropic")["payload"]
    assert not conversation.drift()["plan"]["changed"]
    assert conversation.reload()["epoch"] == 3
    begun = conversation.begin_compaction(provider="anthropic")
    assert begun.raw("payload") and begun["token"]
    conversation.abort_compaction(begun["token"])
    token = conversation.begin_compaction()["token"]
    assert conversation.commit_compaction(token)["reason"] == "compaction"
    assert conversation.switch_profile("template")["epoch"] >= 4
    assert conversation.add_resources(skill_paths=["skills"])["epoch"] >= 4
    assert conversation.reload_skills()["epoch"] >= 4
    assert conversation.pending() is not None
    with pytest.raises(proem.NotFoundError) as missing:
        conversation.diff(1, 99)
    assert missing.value.code == "not_found"


def test_hooks_change_one_turn(store: proem.Store) -> None:
    conversation = store.conversation("c", **BASE)
    seen: list[dict[str, Any]] = []

    @conversation.before_agent_start
    def add_ticket(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(event)
        return {"message": "Ticket: 17", "system_prompt": event["system_prompt"] + "\nToday only."}

    @conversation.context
    async def last_only(event: dict[str, Any]) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        return list(event["messages"][-1:])

    turn = conversation.turn("Hello")
    assert seen[0]["prompt"] == "Hello" and seen[0]["system_prompt"] == "Be brief."
    assert turn.system_prompt == "Be brief.\nToday only." and turn.prefix == "Be brief."
    assert turn.changes[0]["hook"] == "add_ticket"
    assert turn.messages == [{"content": "Ticket: 17", "role": "user"}]
    assert len(turn.history) == 2


def test_resources_are_discovered(store: proem.Store) -> None:
    conversation = store.conversation("c", profile="default")
    reasons: list[str] = []

    @conversation.resources_discover
    def discover(event: dict[str, Any]) -> None:
        reasons.append(event["reason"])

    conversation.turn("Hello")
    conversation.reload()
    assert reasons == ["startup", "reload"]


def raises(_: dict[str, Any]) -> None:
    raise RuntimeError("no ticket")


def exits(_: dict[str, Any]) -> None:
    sys.exit(3)


def nonsense(_: dict[str, Any]) -> object:
    return object()


def wrong_shape(_: dict[str, Any]) -> dict[str, Any]:
    return {"no": "such key"}


def surrogate(_: dict[str, Any]) -> dict[str, Any]:
    return {"message": "\ud800"}


@pytest.mark.parametrize("hook", [raises, exits, nonsense, wrong_shape, surrogate])
def test_a_hook_that_fails_is_reported_by_name_and_skipped(hook: Any, store: proem.Store) -> None:
    conversation = store.conversation("c", **BASE)
    assert conversation.before_agent_start(hook) is hook
    with pytest.warns(proem.HookWarning, match=f"the hook `{hook.__name__}` failed at `before_agent_start`"):
        turn = conversation.turn("Hello")
    assert turn.system_prompt == "Be brief."
    notes = [note["message"] for note in turn.notes if hook.__name__ in note["message"]]
    assert len(notes) == 1


def test_a_hook_that_hangs_is_skipped_and_one_may_call_again(store: proem.Store) -> None:
    conversation, release = store.conversation("c", **BASE), threading.Event()
    conversation.turn("Hello")
    conversation.before_agent_start(lambda _: release.wait(60) and None)
    with pytest.warns(proem.HookWarning, match="longer than"):
        turn = conversation.turn("Hello")
    release.set()
    assert turn.system_prompt == "Be brief."
    other = store.conversation("again", **BASE)
    inner: list[str] = []

    @other.before_agent_start
    def again(_: dict[str, Any]) -> None:
        inner.append(store.conversation("inner", **BASE).turn("Hello").digest)

    assert inner == [] and other.turn("Hello").digest == inner[0]


def test_bad_calls_get_errors(store: proem.Store) -> None:
    with pytest.raises(proem.RequestError) as bad:
        store.conversation("a b")
    assert bad.value.code == "bad_id" and bad.value.hint
    conversation = store.conversation("c", **BASE)
    with pytest.raises(proem.NotFoundError) as missing:
        conversation.reload()
    assert missing.value.code == "no_conversation"
    calls: list[dict[str, Any]] = [{"prompt": "a"}, {"conversation": "other"}, {"messages": 3}, {"tools": "read"}]
    for call in calls:
        with pytest.raises(proem.RequestError):
            conversation.turn("Hello", **call)
    with pytest.raises(proem.RequestError):
        conversation.turn(3)  # type: ignore[arg-type]
    with pytest.raises(proem.RequestError):
        conversation.set_active_tools([1])  # type: ignore[list-item]
    with pytest.raises(proem.RequestError):
        conversation.context(3)  # type: ignore[type-var]
    assert conversation.turn("Hello").epoch == 1
    with pytest.raises(proem.NotFoundError) as missing:
        conversation.commit_compaction("token")
    assert missing.value.code == "no_compaction"


def test_a_closed_store_says_so(store: proem.Store) -> None:
    conversation = store.conversation("c", **BASE)
    conversation.turn("Hello")
    store.close()
    with pytest.raises(proem.StoreError) as closed:
        conversation.turn("Hello")
    assert closed.value.code == "store_closed" and closed.value.hint


@pytest.mark.parametrize("name", ["mysql://me:secret@db/x", "", "sqlite:", "postgres://me@127.0.0.1:1/x"])
def test_a_store_that_cannot_be_opened_says_so(name: str) -> None:
    with pytest.raises(proem.StoreError) as error:
        proem.open(name)
    assert error.value.code == "store_unavailable" and error.value.hint and "secret" not in str(error.value)


def test_turns_do_not_block_the_loop() -> None:
    async def main() -> tuple[list[str], int]:
        with await proem.open_async("sqlite:agent.db") as store:
            conversation = store.conversation("c", **BASE)
            conversation.before_agent_start(lambda _: time.sleep(0.3))
            ticks, turn = 0, asyncio.ensure_future(conversation.turn_async("Hello"))
            while not turn.done():
                await asyncio.sleep(0.01)
                ticks += 1
            others = [store.conversation(f"c-{index}", **BASE).turn_async("Hello") for index in range(20)]
            return [turn.digest for turn in await asyncio.gather(turn, *others)], ticks

    digests, ticks = asyncio.run(main())
    assert len(set(digests)) == 1 and ticks > 3


def test_a_second_descriptor_is_refused() -> None:
    with proem.open("sqlite:agent.db") as store:
        conversation = store.conversation("c", **BASE)
        conversation.turn("Hello")
        connection = sqlite3.connect("agent.db")
        connection.execute("select count(*) from sqlite_master").fetchone()
        with pytest.raises(proem.StoreError) as refused:
            conversation.turn("Hello")
        assert refused.value.code == "store_opened_twice" and "sqlite3" in str(refused.value.hint)
        connection.close()
        # That was the danger: without locks, the log was removed under the store, which says so.
        with pytest.raises(proem.StoreError, match="its log was removed"):
            conversation.turn("Hello")
    with proem.open("sqlite:agent.db") as store, proem.open("sqlite:./agent.db") as second:
        # A second handle of the package itself is safe.
        for opened in (store, second, store):
            assert opened.conversation("c").turn("Hello").reused
    connection = sqlite3.connect("agent.db")
    connection.execute("select count(*) from sqlite_master").fetchone()
    with pytest.raises(proem.StoreError, match="second time"):
        proem.open("sqlite:agent.db")
    connection.close()


def test_a_forked_process_opens_the_store_again() -> None:
    with proem.open("sqlite:agent.db") as store:
        conversation = store.conversation("c", **BASE)
        digest = conversation.turn("Hello").digest
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                turns = [conversation.turn("Hello") for _ in range(2)]
                other = store.conversation("of-the-child", **BASE).turn("Hello")
            said = [str(one.message) for one in caught if one.category is proem.ForkWarning]
            is_right = all(turn.digest == digest for turn in [*turns, other]) and len(said) == 1
            os.write(write, b"right" if is_right else f"{said} {turns}".encode())
            os._exit(0)
        os.close(write)
        assert os.read(read, 1000) == b"right"
        os.waitpid(child, 0)
        assert conversation.turn("Hello").reused
        assert store.conversation("of-the-child").turn("Hello").reused


def test_the_locks_of_a_forked_process_are_its_own() -> None:
    with proem.open("sqlite:agent.db") as store:
        store.conversation("c", **BASE).turn("Hello")
        (to_read, to_write), (back_read, back_write) = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
            if child == 0:
                conversation = store.conversation("c")
                conversation.turn("Hello")
                os.write(back_write, b"1")
                os.read(to_read, 1)
                # Its parent has closed the store: the log must still be there.
                turn = store.conversation("later", **BASE).turn("Hello")
                os.write(back_write, b"2" if turn.epoch == 1 else b"?")
                os._exit(0)
        assert os.read(back_read, 1) == b"1"
    os.write(to_write, b"1")
    assert os.read(back_read, 1) == b"2"
    os.waitpid(child, 0)


ENDS = {
    "a call that runs": """
        threading.Thread(target=lambda: [conversation.turn("Hello") for _ in range(10**6)], daemon=True).start()
        time.sleep(0.2)
    """,
    "a hook that runs": """
        conversation.before_agent_start(lambda _: [time.sleep(0.001) for _ in range(10**6)] and None)
        threading.Thread(target=lambda: conversation.turn("Hello"), daemon=True).start()
        time.sleep(0.2)
    """,
    "builds of many threads": """
        for _ in range(8):
            threading.Thread(target=lambda: [proem.build() for _ in range(10**6)], daemon=True).start()
        time.sleep(0.2)
    """,
    "a call at the end": """
        import atexit
        atexit.register(lambda: print(conversation.turn("Hello").epoch))
    """,
}


@pytest.mark.parametrize("work", ENDS.values(), ids=ENDS.keys())
def test_the_interpreter_ends_in_the_middle_of_a_call(work: str) -> None:
    text = f"""
import threading, time, proem
store = proem.open("sqlite:agent.db")
conversation = store.conversation("c", profile="template", system="Be brief.")
conversation.turn("Hello")
{textwrap.dedent(work)}
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Fatal" not in done.stderr and "panicked" not in done.stderr, done.stderr


def test_nothing_is_logged_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        proem.open("memory:").conversation("c", **BASE).turn("Hello")
    assert not caplog.records
