"""The states of a job, and the one table of the steps between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """Where a job stands. The last four are its ends."""

    WAITING = auto()  # for its turn, or to be put into a lane
    RUNNING = auto()  # its work has begun
    STOPPING = auto()  # somebody stopped it: it has not ended yet, since its work has not noticed
    GIVING_UP = auto()  # as STOPPING, but the next request starts it again
    DONE = auto()  # it has a result
    FAILED = auto()  # it has an error
    STOPPED = auto()  # it ended by a stop, and nothing starts it again until the stop is taken back
    GIVEN_UP = auto()  # as STOPPED, but the next request starts it again


class Action(Enum):
    """What can happen to a job."""

    START = auto()  # its turn has come
    STOP = auto()  # nobody who is still there waits for it, or it was ended for all
    GIVE_UP = auto()  # too many jobs wait, or everybody has left: nobody pressed Stop
    TAKE_BACK = auto()  # somebody wants it after all
    COMPLETE = auto()  # the result is there
    FAIL = auto()  # its work raised an error, or cannot begin
    NOTICE_STOP = auto()  # its work raised Stopped, or it had not begun


# From which states an action leads to which. Where an action has no step from a state, it changes nothing.
STEPS: Mapping[Action, Mapping[State, State]] = {
    Action.START: {State.WAITING: State.RUNNING},
    Action.STOP: {State.WAITING: State.STOPPING, State.RUNNING: State.STOPPING},
    Action.GIVE_UP: {
        State.WAITING: State.GIVING_UP,
        State.RUNNING: State.GIVING_UP,
        State.STOPPING: State.GIVING_UP,
    },
    Action.TAKE_BACK: {State.STOPPING: State.GIVING_UP, State.STOPPED: State.GIVEN_UP},
    # Work that completes in spite of a stop is done.
    Action.COMPLETE: dict.fromkeys((State.WAITING, State.RUNNING, State.STOPPING, State.GIVING_UP), State.DONE),
    # Whatever work raises after a stop counts as the stop: a download says it in words of its own.
    Action.FAIL: {
        State.WAITING: State.FAILED,
        State.RUNNING: State.FAILED,
        State.STOPPING: State.STOPPED,
        State.GIVING_UP: State.GIVEN_UP,
    },
    Action.NOTICE_STOP: {
        State.WAITING: State.STOPPED,
        State.RUNNING: State.STOPPED,  # by itself: a training run, for example, that another server stopped
        State.STOPPING: State.STOPPED,
        State.GIVING_UP: State.GIVEN_UP,
    },
}
ENDS = frozenset({State.DONE, State.FAILED, State.STOPPED, State.GIVEN_UP})
TOLD_TO_END = frozenset({State.STOPPING, State.GIVING_UP, State.STOPPED, State.GIVEN_UP})
ENDED_BY_STOP = frozenset({State.STOPPED, State.GIVEN_UP})
STARTED_AGAIN = frozenset({State.GIVING_UP, State.GIVEN_UP})  # by the next request
