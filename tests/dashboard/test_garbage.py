"""Collections visit only what is new, complete ones find what was frozen; in a process of their own, for they are for good."""

from __future__ import annotations

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
