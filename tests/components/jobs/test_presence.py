"""Who is still there."""

from __future__ import annotations

import types

from components.jobs import MOST_DRAWING, Job, Lane, PageDrawing, Presence, Queue


def test_a_connection_that_breaks_for_a_moment_is_no_leaving(clock: types.SimpleNamespace) -> None:
    connected = {"me", "quiet"}
    hasty = Presence(lambda person: person in connected, grace_seconds=2)
    hasty.see("me")
    presence = Presence(lambda person: person in connected, grace_seconds=10)
    assert presence.is_present("me")
    presence.see("quiet")
    connected.clear()
    clock.now += 9
    assert not hasty.is_present("me")
    assert presence.is_present("me")
    assert presence.is_present("quiet")  # whose page was drawn a moment ago
    assert not presence.is_present("never seen")
    clock.now += 2  # being asked about is no sign of life
    assert not presence.is_present("me")
    connected.add("me")
    assert presence.is_present("me")
    connected.clear()
    clock.now += 9
    assert presence.is_present("me")
    assert not presence.is_present("quiet")


def test_work_that_gives_way_pauses_while_a_page_is_drawn():
    drawing = PageDrawing()
    queue = Queue({"background": Lane(gives_way=True)}, is_busy=drawing.is_under_way)
    job = Job("quiet work")
    with drawing.under_way():
        assert drawing.is_under_way()
        queue.put(job, lambda report, is_stopped: is_stopped(), "background")
        assert not job.finished.wait(0.3)
    assert not drawing.is_under_way()
    assert job.finished.wait(10)
    assert job.result is False


def test_a_drawing_that_waits_for_such_work_itself_counts_for_some_seconds(clock):
    drawing = PageDrawing()
    with drawing.under_way():
        clock.now += MOST_DRAWING - 0.1
        assert drawing.is_under_way()
        clock.now += 0.2
        assert not drawing.is_under_way()
