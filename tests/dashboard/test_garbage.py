"""Collections visit only what is new; threads share heaps, and wait without spinning: each in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

SCRIPT = """
import gc, time, weakref
from dashboard import garbage

class Node:
    def __init__(self):
        self.itself = self

garbage.keep_collections_short()
garbage.keep_collections_short()
assert gc.callbacks.count(garbage.freezer) == 1
gc.disable()
node = Node()
seen = weakref.ref(node)
garbage.freezer.collect_everything()
complete = garbage.freezer.complete
assert complete >= 1 and gc.get_freeze_count() > 1_000 and not gc.get_objects(generation=2)
frozen = gc.get_freeze_count()

del node  # a circle among frozen objects
young = Node()
young_seen = weakref.ref(young)
del young  # a circle that was never frozen
gc.collect()
assert young_seen() is None, "what is new is searched by every collection"
assert seen() is not None and garbage.freezer.complete == complete, "what is frozen is not, until a complete one is due"
garbage.freezer.collect_everything()
assert seen() is None and garbage.freezer.complete == complete + 1

kept = [Node() for _ in range(1_000)]
gc.collect(0)
before = gc.get_freeze_count()
gc.collect()
assert gc.get_freeze_count() >= before + 1_000 and garbage.freezer.complete == complete + 1

now = time.monotonic
time.monotonic = lambda: now() + 3_600  # an hour later
gc.collect()
assert garbage.freezer.complete == complete + 2
gc.collect()
assert garbage.freezer.complete == complete + 2
print("done")
"""


def test_frozen_circles_are_found_by_complete_collections_only() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


HEAPS = """
import ctypes, pathlib, sys, threading
from dashboard import garbage

garbage.share_freed_memory()
everyone = threading.Barrier(12)

def work():
    everyone.wait()  # no thread takes over the heap of one that has ended
    kept = [bytes(5_000) for _ in range(100)]
    everyone.wait()

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
path = pathlib.Path(sys.argv[1])
file = ctypes.c_void_p(library.fopen(str(path).encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
assert path.read_text().count("<heap nr=") == garbage.HEAPS
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="heaps of threads are glibc's")
def test_threads_share_two_heaps(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAPS, str(tmp_path / "heaps.xml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


WAITING = """
import os, sys
import streamlit.web.bootstrap
seen = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "torch"):
            seen.setdefault(name, {key: os.environ.get(key) for key in ("OPENBLAS_THREAD_TIMEOUT", "GOMP_SPINCOUNT")})

assert not {"numpy", "torch"} & set(sys.modules), "Streamlit loads them before the server can say how their threads wait"
sys.meta_path.insert(0, Watch())
from dashboard import app
import numpy
import torch
assert all(None not in values.values() for values in seen.values()) and set(seen) == {"numpy", "torch"}, seen
assert not set(seen["numpy"]) & set(app.operator_settings.environment()), "training, a process of its own, waits as it likes"
"""


def test_how_threads_of_numpy_and_torch_wait_is_said_before_these_are_loaded() -> None:
    """They read it once. By default they spin after each product, in which other sessions could compute."""
    names = {"OPENBLAS_THREAD_TIMEOUT", "GOMP_SPINCOUNT"}  # another test may have said them in this process
    given = {name: text for name, text in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", WAITING], cwd=ROOT, capture_output=True, text=True, check=False, env=given
    )
    assert done.returncode == 0, done.stderr
