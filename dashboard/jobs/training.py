"""Training runs as the sessions follow them: started, joined again after a reload, resumed, deleted, and named."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from components.errors import InputError, UserError
from components.model.catalog import RUN_PREFIX, RUN_START, run_title
from components.training import runs
from components.training.objectives import OBJECTIVES
from dashboard import access, caching
from dashboard.settings import allowed_model

if TYPE_CHECKING:
    from components.jobs import Job
    from components.training.data import Split, TrainingData
    from components.training.run_folder import RunFolder, RunState
    from components.training.settings import TrainingSettings


def start(settings: TrainingSettings, data: TrainingData, split: Split, steps: int) -> RunFolder:
    """Create a run of so many steps and put it into the line. Raises InputError where training is not allowed."""
    access.check_training()
    _join_processes()
    run = runs.create(settings, data, split)
    follow(run, steps)
    return run


def follow(run: RunFolder, steps: int = 0, starts: bool = True) -> Job:
    """The job of a run, which this session follows from now on; `steps` are shown until the process has counted them.

    For `starts` see `runs.follow`.
    """
    jobs, person = caching.training_runs(), caching.person()
    work = runs.follow(run, starts)
    return jobs.request(run.name, f"Training: {title_of(run)}", work, person=person, total=steps)


def _join_processes() -> None:
    """Follow the processes that outlived a server, so that a new run takes its place behind them and not before."""
    for run in runs.list_runs():
        with suppress(UserError):  # a damaged run is nobody's to follow
            under_way(run, runs.state_of(run))


def resume(run: RunFolder) -> None:
    """Let a run that was stopped, interrupted or failed continue. Raises InputError."""
    access.check_training()
    _join_processes()
    forget(run)
    runs.resume(run)
    follow(run, run.state().steps)


def delete(run: RunFolder) -> None:
    """Remove a run that has ended, with its model. Raises InputError."""
    access.check_training()
    before = caching.training_runs().find(run.name)
    if before is not None and not before.finished.is_set():
        caching.training_runs().stop(before)
    runs.delete(run)
    forget(run)


def forget(run: RunFolder) -> None:
    """Keep no outcome of an earlier attempt: the next `follow` starts anew."""
    jobs = caching.training_runs()
    before = jobs.find(run.name)
    if before is not None:
        jobs.forget(before, caching.person())
        jobs.drop([before])


def under_way(run: RunFolder, state: RunState) -> Job | None:
    """The job of a run that waits or is at work, which this session joins; None for a run that has ended.

    After a restart of the server nobody follows the processes that go on: whoever looks at such a run follows it again.
    """
    job = caching.training_runs().find(run.name)
    if job is not None and not job.finished.is_set():
        return job if job.told_to_stop.is_set() else follow(run)
    return follow(run, starts=False) if job is None and state.status == "running" else None


def base_of(run: RunFolder) -> str:
    """The key of the model that a run started from. Raises InputError where this server does not offer that model."""
    try:
        if run.settings().damage and run.start_folder.is_dir():
            return allowed_model(RUN_PREFIX + run.name + RUN_START)
        return allowed_model(run.settings().model)
    except ValueError as problem:
        if isinstance(problem, UserError):
            raise
        raise InputError(
            f"The model that {run.name} started from cannot be loaded: {problem}.",
            "Only the models that this server offers are loaded.",
            "Look at the run's own record, or ask the operator.",
        ) from problem


def untouched_of(run: RunFolder) -> str | None:
    """The key of the published model at which a run's line of runs began; None where that is the one it started from.

    A run may start from a model that was damaged on purpose, or from that of another run, and so on. Raises InputError where
    one of those runs is gone (also where runs begin with each other: one was deleted, and its name used again), or where
    this server does not offer that model.
    """
    key, seen = run.settings().model, {run.name}
    while key.startswith(RUN_PREFIX):
        name = key.removeprefix(RUN_PREFIX).removesuffix(RUN_START)
        earlier = runs.find(name)
        if earlier is None or name in seen:
            raise InputError(
                f"The run {name} was deleted, so that nobody knows from which published model {run.name} comes.",
                "It was the start of this run.",
                "Compare with a model of your choice on the other pages.",
            )
        seen.add(name)
        key = earlier.settings().model
    return None if key == run.settings().model and not run.settings().damage else allowed_model(key)


def title_of(run: RunFolder) -> str:
    """A run's name for people: its own, or what it learns, and when it was made."""
    name = run_title(run.name)
    with suppress(UserError):
        settings = run.settings()
        words = settings.name or " and ".join(OBJECTIVES[key].name for key in settings.objectives)
        return ", ".join([words, *name.split(", ")[1:]])
    return name
