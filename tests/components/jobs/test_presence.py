"""Who is still there."""

from __future__ import annotations

import types

from components.jobs import Presence


def test_a_connection_that_breaks_for_a_moment_is_no_leaving(clock: types.SimpleNamespace) -> None:
    connected = {"me", "quiet"}
    presence = Presence(lambda person: person in connected, grace_seconds=10)
    assert presence.is_present("me")
    presence.see("quiet")
    connected.clear()
    clock.now += 9
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
