"""Diagnosis: the code gives the remedies and the shares that the page shows."""

from __future__ import annotations

import numpy as np

from components.retrieval.failures import traits
from dashboard.corpora import current
from tests.dashboard.code.shown import codes, figure, numbers
from tests.support.pages import Open, at_rest, plain_table, setting
from tests.support.snippets import Run


def test_the_remedies_and_the_traits(open_page: Open, run: Run, sixty_pairs: str) -> None:
    app = at_rest(open_page("diagnose", v="what-helps", corpus=sixty_pairs, pool="cls", seed="3"))
    assert not app.exception
    rows = run(codes(app)["remedies"].snippet)["values"]
    drawn = figure(app, "remedies")["data"]
    shown = {trace["name"]: numbers(trace["x"]) for trace in drawn if trace["type"] == "bar"}
    assert [row.name for row in rows] == ["prompt", "repair", "hybrid", "maxsim", "layer"]
    assert shown["repaired"].tolist() == [row.result.repaired for row in rows]
    assert (-shown["harmed"]).tolist() == [row.result.harmed for row in rows]
    assert shown["repaired"].sum() > 0
    points = [numbers(trace["x"])[0] for trace in drawn if trace["type"] == "scatter" and trace["mode"] == "markers"]
    assert np.allclose(points, [100 * row.result.recall for row in rows], atol=1e-6)
    found = run(codes(app)["trait_shares"].snippet)["values"]
    dots = {
        trace["name"]: numbers(trace["x"])
        for trace in figure(app, "trait_shares")["data"]
        if trace["mode"] == "markers"
    }
    held = [share for share in found if share.failed or share.found]
    assert np.allclose(dots["failed"], [100 * share.share_of_failed for share in held], atol=1e-6)
    assert np.allclose(dots["found"], [100 * share.share_of_found for share in held], atol=1e-6)
    assert any(traits.in_words(found).split(". ")[0] in item.value for item in app.markdown)
    shown = next(table for table in (plain_table(app, n) for n in range(len(app.table))) if "needs" in table.columns)
    assert shown["MRR"].tolist() == [f"{100 * row.result.mrr:.1f}" for row in rows]
    assert shown["needs"].tolist() == [row.needs for row in rows]
    # Search shows the remedy on a failed query, by an option that a half chose.
    app.button(key="try_layer").click().run()
    layer = rows[-1]
    option = next((name for name in layer.result.chosen if name), next(iter(layer.options)))
    assert option == f"layer {setting(app, 'layer2')}, {setting(app, 'pooling2')}"
    assert (setting(app, "search_view"), setting(app, "compare_with")) == ("hits", "setting")
    assert layer.result.now[current.demo().columns["compressed"].index(setting(app, "query"))] > 1
