"""Which locks the project has, and in which order threads take them."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from components.jobs import Signal

ROOT = Path(__file__).parents[2]
KINDS = {f"threading.{kind}" for kind in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore")}
_PLAIN = (type(threading.Lock()), type(threading.RLock()))


def _sites(node: ast.AST, owner: str = "") -> Iterator[tuple[int, int, str]]:
    """First and last line and name ("LoadedModel.lock", "BUILDING") of every statement that creates a lock of a module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign | ast.AnnAssign) and child.value is not None:
            calls = {ast.unparse(call.func) for call in ast.walk(child.value) if isinstance(call, ast.Call)}
            if calls & KINDS:
                target = child.targets[0] if isinstance(child, ast.Assign) else child.target
                name = ast.unparse(target).removeprefix("self.")
                yield child.lineno, child.end_lineno or child.lineno, f"{owner}{name}"
        yield from _sites(child, f"{child.name}." if isinstance(child, ast.ClassDef) else owner)


@cache
def locks_of(path: Path) -> tuple[tuple[int, int, str], ...]:
    """As `_sites`, of a file; with the file's path before each name."""
    where, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    assert "from threading import" not in source, f"{where}: a lock created without its module's name is not seen"
    found = _sites(ast.parse(source)) if any(kind in source for kind in KINDS) else ()
    return tuple((first, last, f"{where} {name}") for first, last, name in found)


class Recorded:
    """A lock that tells the recorder when a thread is about to wait for it, has it, and gives it back."""

    def __init__(self, recorder: Recorder, name: str, lock: Any) -> None:
        self.name, self._recorder, self._lock = name, recorder, lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if blocking:  # who does not wait locks nobody out
            self._recorder.note(self)
        is_taken: bool = self._lock.acquire(blocking, timeout)
        if is_taken:
            self._recorder.held.append(self)
        return is_taken

    def release(self) -> None:
        held = self._recorder.held
        if self in held:  # else another thread took it
            del held[len(held) - 1 - held[::-1].index(self)]
        self._lock.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Recorder(threading.local):
    """Notes for each lock of the project which others the same thread held when it asked for it."""

    held: list[Recorded]  # by this thread, in the order in which they were taken
    order: set[tuple[str, str]] = set()  # noqa: RUF012 - of all threads: (held, taken)
    asked: set[str] = set()  # noqa: RUF012
    held_while_waiting: set[str] = set()  # noqa: RUF012 - for a job, or for what another thread computes

    def __init__(self) -> None:
        self.held = []

    def note(self, lock: Recorded) -> None:
        self.asked.add(lock.name)
        # A lock that this thread holds already is not waited for; another one of the same kind is.
        self.order.update((held.name, lock.name) for held in self.held if held is not lock and lock not in self.held)


def record(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """From now on the locks of modules are recorded, and those of objects that are created."""
    recorder = Recorder()
    recorder.order.clear()
    recorder.asked.clear()
    recorder.held_while_waiting.clear()

    def recorded(kind: str) -> Any:
        create = getattr(threading, kind)

        def lock() -> Any:
            caller = sys._getframe(1)
            path = Path(caller.f_code.co_filename)
            if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in ("components", "dashboard"):
                return create()
            (name,) = [name for first, last, name in locks_of(path) if first <= caller.f_lineno <= last]
            return Recorded(recorder, name, create())

        return lock

    def waiting(wait: Any) -> Any:
        def wait_and_note(*arguments: Any, **options: Any) -> Any:
            recorder.held_while_waiting.update(lock.name for lock in recorder.held)
            return wait(*arguments, **options)

        return wait_and_note

    # Of a cache alone: transformers has threads of its own, for which it waits while it builds a model.
    computed = type("Computed", (Future,), {"result": waiting(Future.result)})
    monkeypatch.setattr("components.jobs.caches.Future", computed)
    monkeypatch.setattr(Signal, "wait", waiting(Signal.wait))
    for kind in ("Lock", "RLock"):
        monkeypatch.setattr(threading, kind, recorded(kind))
    known: dict[int, Recorded] = {}
    modules = [
        module for name, module in sys.modules.items() if name.split(".")[0] in ("components", "dashboard", "tests")
    ]
    for module in sorted(
        modules, key=lambda module: module.__name__
    ):  # where a lock is created before where it is imported
        for name, value in list(vars(module).items()):
            if isinstance(value, _PLAIN):
                if id(value) not in known:
                    homes = [other for other in modules if vars(other).get(name) is value]
                    names = [
                        found
                        for home in homes
                        for *_, found in locks_of(Path(str(home.__file__)))
                        if found.endswith(f" {name}")
                    ]
                    if not names:  # of a test
                        continue
                    known[id(value)] = Recorded(recorder, names[0], value)
                monkeypatch.setattr(module, name, known[id(value)])
    return recorder
