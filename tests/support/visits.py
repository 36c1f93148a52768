"""People who visit plain pages: what each move takes, from the message to the end of the run."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from tests.support.server import Server
from tests.support.session import Session, opened

WORDS = (
    *("river", "stone", "market", "window", "garden", "letter", "winter", "bridge"),
    *("music", "doctor", "ship", "farmer", "road", "kitchen", "teacher", "forest"),
)


def check_no_error(session: Session) -> None:
    """Nothing of what was drawn is an error: neither Streamlit's nor a message of the dashboard."""
    for element in session.elements:
        assert type(element).__name__ != "Exception", element
        assert "Something went wrong" not in getattr(element, "body", ""), element


def plain_visits(server: Server, sessions: int, visits: int, pause: float) -> list[float]:
    """Seconds of each move of some sessions on Layers, which are open at once and all have the same texts.

    Each session makes `visits` moves, with up to `pause` seconds before each.
    """

    def visit(number: int) -> list[float]:
        pauses, taken = random.Random(number), []
        with opened(server.url) as session:
            session.run("layers")
            for step in range(visits):
                time.sleep(pauses.uniform(0, pause))
                taken.append(timed(session, "layers", f"v=sentence-curves&pool={('max', 'mean')[step % 2]}"))
        return taken

    with ThreadPoolExecutor(sessions) as people:
        return [seconds for taken in people.map(visit, range(sessions)) for seconds in taken]


def visits_with_own_texts(server: Server, people: int, moves: int, seconds: float, seed: int) -> list[float]:
    """Seconds of each move of people who are there at once, with texts of their own at every move, on three pages.

    Their moves are spread over the given time. Everybody's first page, before the time begins, is not counted.
    """

    def visit(number: int) -> list[float]:
        chance, taken = random.Random(seed * 10_000 + number), []
        with opened(server.url) as session:
            session.run("layers")
            began = time.monotonic()
            for moment in sorted(chance.uniform(0, seconds) for _ in range(moves)):
                time.sleep(max(0.0, began + moment - time.monotonic()))
                page = ("layers", "tokens", "heatmaps")[len(taken) % 3]
                texts = [" ".join(chance.choices(WORDS, k=10)) for _ in range(2)]
                taken.append(timed(session, page, urlencode([("s", text) for text in texts])))
        return taken

    with ThreadPoolExecutor(people) as pool:
        return [each for taken in pool.map(visit, range(people)) for each in taken]


def timed(session: Session, page: str, address: str) -> float:
    """Seconds of one move; raises AssertionError if the page shows an error."""
    started = time.perf_counter()
    session.run(page, address)
    taken = time.perf_counter() - started
    check_no_error(session)
    return taken
