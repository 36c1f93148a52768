"""The ranking learnt from [CLS] vectors as drawn: its bars, another C, and every layer."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.support.browser import Visit, settle, wait_until
from tests.support.stage import Stage

ALL = [
    "Learnt: [CLS] layer 6",
    "Cosine: [CLS] layer 6",
    "Cross-encoder: reads both at once",
    "BM25: words",
    "By chance",
]
BI_ENCODER = "Bi-encoder: sentence vectors"
# The bars once they are all there: that of the cross-encoder comes when it is loaded.
BARS = """(names) => {
    const plot = document.querySelector('.js-plotly-plot');
    if (!plot?._fullData || document.querySelector('[data-testid=stProgress]')) return null;
    const trace = plot._fullData[0];
    if (trace.type !== 'bar') return null;
    const bars = Object.fromEntries(trace.y.map((name, row) => [name.replace('<br>', ' '), trace.x[row]]));
    return names.every((name) => name in bars) ? bars : null;
}"""


def bars(page: Page) -> dict[str, float]:
    values: dict[str, float] = wait_until(page, BARS, ALL, timeout=240_000)
    settle(page)
    return values


def test_a_ranking_is_learnt_and_compared(use: Stage) -> None:
    page = use.at("/pairs?v=learnt-ranking&lq=60")
    first = bars(page)
    assert BI_ENCODER in first
    expect(page.get_by_text("Mean average precision (MAP)")).to_be_visible()
    assert page.locator(".js-plotly-plot").count() == 2  # and the curve of precision

    page.get_by_role("button", name="Learn at every layer").click()
    wait_until(
        page,
        "() => document.querySelectorAll('.js-plotly-plot').length === 3"
        " && !document.querySelector('[data-testid=stProgress]')",
        timeout=240_000,
    )
    # A link holds the choice of C and gives the same ranking again.
    page = use.at("/pairs?v=learnt-ranking&lq=60&lc=1")
    other = bars(page)
    assert other[BI_ENCODER] == first[BI_ENCODER]
    assert other["Learnt: [CLS] layer 6"] != first["Learnt: [CLS] layer 6"]


TOPICS = {
    "wing": ("lift of a swept wing", "flutter of a thin wing", "a wing at high speed", "pressure on a wing's surface"),
    "heat": (
        "heat transfer in a boundary layer",
        "cooling of a nose cone",
        "heat at stagnation points",
        "hot gas flow",
    ),
    "shock": ("shock waves before a blunt body", "the shape of a bow shock", "shocks in a nozzle", "weak shock waves"),
    "shell": ("buckling of thin shells", "stress in a cylinder", "vibration of plates", "a shell under pressure"),
}


def test_a_users_folder_is_uploaded_as_zip_and_learnt_from(visit: Visit, tmp_path: Path) -> None:
    """A small collection in BEIR's form, graded 0 to 2: two queries for each text of four topics."""
    documents = [
        (f"{topic}{number}", topic, text) for topic, texts in TOPICS.items() for number, text in enumerate(texts)
    ]
    corpus = [json.dumps({"_id": key, "title": "", "text": text}) for key, _, text in documents]
    queries, judgements = [], ["query-id\tcorpus-id\tscore"]
    for key, topic, text in documents:
        for number, words in enumerate((f"papers on {text}", f"what is known about {text}")):
            queries.append(json.dumps({"_id": f"q{key}{number}", "text": words}))
            for other, its_topic, _ in documents:
                judgements.append(f"q{key}{number}\t{other}\t{2 if other == key else int(its_topic == topic)}")
    path = tmp_path / "little-cranfield.zip"
    with zipfile.ZipFile(path, "w") as packing:
        for name, lines in (("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels/test.tsv", judgements)):
            packing.writestr(f"little-cranfield/{name}", "\n".join(lines))
    page = visit("/pairs?v=learnt-ranking&gs=file")
    page.locator(".st-key-graded_files input[type=file]").set_input_files(path)
    values = bars(page)
    assert values[BI_ENCODER] > values["By chance"]
    expect(page.get_by_text("MAP of 8 test queries")).to_be_visible()
    expect(page.get_by_text("little-cranfield").first).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    assert page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    for table in page.locator("[data-testid=stTable]:visible").all():  # every column is seen without scrolling
        box = table.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
        assert table.evaluate("(element) => element.scrollWidth <= element.clientWidth + 1")
