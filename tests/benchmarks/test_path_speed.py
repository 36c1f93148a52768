"""What the whole path promises: a first drawing within a second, and frames that leave time for others (`make bench`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Browser

from tests.support.browser import settle
from tests.support.measurements import report
from tests.support.server import Server

SENTENCE = "The trophy does not fit in the suitcase because it is too big."  # 16 tokens
# Milliseconds of script in every frame while the path plays once and is walked through by keys, in order.
FRAMES = """async (root) => {
  const path = root.bertInternalsPath, rest = (ms) => new Promise((done) => setTimeout(done, ms));
  await rest(2500);
  path.frames.length = 0;
  path.play(true);
  for (const _ of path.facts.stops) { await rest(1600); path.set({ stop: path.facts.stops[(path.stopAt() + 1) % 8] }, false); }
  path.play(false);
  for (let token = 0; token < path.facts.tokens.length; token++) { path.set({ token }); await rest(60); }
  return path.frames.slice().sort((a, b) => a - b);
}"""


def test_frames_of_the_path_and_its_first_drawing(browser: Browser, servers: Callable[..., Server]) -> None:
    """A ratio of one run: a frame's script against the 16.7 ms that a screen of 60 Hz gives to it."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    received: list[tuple[float, int]] = []
    page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda data: received.append((time.time(), len(data))))
    )
    address = f"{servers().url}/inside?{urlencode({'v': 'whole-path', 's': [SENTENCE, 'It was late.']}, doseq=True)}"
    page.goto(address)
    path = page.locator(".path canvas[data-drawn]").first
    path.wait_for(timeout=60_000)
    drawn = time.time()
    arrived = next(at for at, size in received if size > 100_000)
    settle(page)
    frames = page.locator(".path").evaluate(FRAMES)
    page.close()
    median, late = frames[len(frames) // 2], frames[int(0.95 * len(frames))]
    report(
        f"first drawing {1000 * (drawn - arrived):.0f} ms after its data; {len(frames)} frames of 16 tokens: script "
        f"{median:.1f} ms at the median, {late:.1f} ms at the 95th percentile; "
        f"{sum(size for _, size in received) / 1e6:.2f} MB in all"
    )
    assert drawn - arrived <= 1
    assert median <= 8
    assert late <= 16.7
