"""Collections visit only what is new, complete ones find what was frozen, idle threads wait; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

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
