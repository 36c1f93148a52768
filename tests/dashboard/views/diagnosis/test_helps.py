"""What helps: the rows and shares are those of the functions, and the sentences say what the figures show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.charts import theme
from components.charts.retrieval.diagnosis import RemedyBar, TraitBar, remedy_bars, trait_shares
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY, spec_of
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.failures import traits
from components.retrieval.failures.remedies import USUAL, folds, kinds
from components.retrieval.failures.traits import TraitShare
from components.retrieval.fusion.settings import FusionSettings
from dashboard import caching
from dashboard.corpora import current
from dashboard.views.diagnosis import debugger_table, helps, other_models
from tests.dashboard import page_states
from tests.dashboard.code.shown import codes, figure
from tests.support import saved_models, tiny
from tests.support.pages import Open, at_rest, plain_table, read_texts, setting, texts


def share(name: str, failed: int, found: int, adjusted: float, of: int = 50) -> TraitShare:
    difference = Interval((failed - found) / of, -0.1, 0.3)
    return TraitShare(name, failed, of, found, of, difference, adjusted)


def test_the_sentence_names_what_the_figure_shows() -> None:
    named = [share("negation", 25, 8, 0.001), share("short query", 20, 8, 0.02), share("long query", 9, 8, 1.0)]
    assert traits.in_words(named) == (
        "50 of 100 queries fail, and more often have the traits “negation” (50 % of the failed, 16 % of the found) and "
        "“short query” "
        "(40 % of the failed, 16 % of the found)."
    )
    assert "trait “negation” (50 %" in traits.in_words(named[:1])
    # Nothing is named: not even the trait with the largest difference, nor one that found queries have more often.
    nothing = [share("negation", 25, 18, 0.3), share("short query", 2, 30, 0.001)]
    said = "50 of 100 queries fail, and share no trait more often than found queries by more than chance."
    assert traits.in_words(nothing) == said
    few = replace(named[0], successes=29, difference=None, adjusted_p=None)
    assert traits.in_words([few]).endswith(traits.too_few(50, 29))
    few = replace(named[0], failures=29, difference=None, adjusted_p=None)
    assert traits.in_words([few]) == (
        "29 of 79 queries fail. 25 have the trait “negation” (86 % of the failed, 16 % of the found): too few "
        "to be sure."
    )
    # Where found queries have each trait as often, nothing is named.
    same = replace(few, failed=4, failures=25, found=8, successes=50)
    assert traits.in_words([same]) == "25 of 75 queries fail. They have no trait more often than found queries."
    one = replace(few, failed=1, failures=1)
    assert traits.in_words([one]) == (
        "1 of 51 queries fails. It has “negation”, as 16 % of the found have: too few to be sure."
    )
    assert traits.in_words([replace(named[0], failures=0, failed=0)]) == "None of 50 queries fails."


@pytest.mark.parametrize(
    ("failed", "failures", "found", "successes", "said"),
    [
        (
            3,
            5,
            1,
            10,
            "3 have the trait “negation” (60 % of the failed, 10 % of the found): too few to be sure, it "
            "takes 30 of each.",
        ),
        (3, 5, 0, 0, "3 have the trait “negation” (60 %); no query is found to compare with."),
        (1, 1, 0, 0, "It has “negation”; no query is found to compare with."),
        (0, 1, 0, 0, "It has none of the traits."),
        (0, 1, 3, 9, "It has no trait more often than found queries."),
    ],
)
def test_of_few_queries_no_share_of_found_ones_is_said_that_are_not_there(
    failed: int, failures: int, found: int, successes: int, said: str
) -> None:
    assert traits.most_different([TraitShare("negation", failed, failures, found, successes)]) == said


def test_the_figure_of_traits_has_a_dot_for_each_share() -> None:
    bars = [TraitBar("Negation", 50, 16, (10.0, 52.0), True), TraitBar("<b>", 8, 30, None, False)]
    drawn = trait_shares(bars, "What failed queries share")
    dots = {trace.name: list(trace.x) for trace in drawn.data if trace.mode == "markers"}
    assert dots == {"found": [16, 30], "failed": [50, 8]}
    # Only what is compared is joined.
    joined = [list(trace.x) for trace in drawn.data if trace.mode == "lines" and trace.name != "95 %"]
    assert joined == [[16, 50]]
    assert [list(trace.x) for trace in drawn.data if trace.name == "95 %"] == [[26.0, 68.0]]
    assert list(drawn.layout.yaxis.ticktext) == ["<b>Negation</b>", "&lt;b&gt;"]


@pytest.mark.parametrize(
    ("chosen", "is_told"),
    [
        (("share 0.5", kinds.ALONE), True),
        (("", kinds.ALONE), True),
        ((kinds.ALONE, kinds.ALONE), False),
        (("", ""), False),
    ],
)
def test_maxsim_is_said_to_be_mixed_only_where_it_is(chosen: tuple[str, str], is_told: bool) -> None:
    rows: list[Any] = [
        SimpleNamespace(name=name, result=SimpleNamespace(chosen=chosen)) for name in ("prompt", "maxsim")
    ]
    assert helps.of_maxsim(rows) == helps.MIXED_HERE * is_told
    assert helps.of_maxsim(rows[:1]) == ""


def test_the_figure_of_remedies_has_bars_on_both_sides() -> None:
    bars = [
        RemedyBar("Query repair", False, 15, 2, (1, 8), 83.6, 6.6, 16.9, is_advised=True),
        RemedyBar("A prompt", True, 0, 0, (0, 0), 72.9, -2.7, 2.7),
        RemedyBar("Another layer", True, 0, 0, (0, 4), 72.9, -2.7, 2.7),
    ]
    drawn = remedy_bars(bars, 72.9, "What each remedy repairs and harms")
    by_name = {trace.name: list(trace.x) for trace in drawn.data if trace.type == "bar"}
    assert by_name == {
        "repaired": [15, 0, 0],
        "harmed": [-2, 0, 0],
        "sham, repaired": [1, 0, 0],
        "sham, harmed": [-8, 0, -4],
    }
    assert [list(trace.text) for trace in drawn.data if trace.name == "repaired"] == [["15", "", ""]]
    points = [list(trace.x) for trace in drawn.data if trace.type == "scatter" and trace.mode == "markers"]
    assert len([trace for trace in drawn.data if trace.type == "scatter" and trace.mode == "lines"]) == 1
    assert points == [[83.6], [72.9], [72.9]]
    said = [note.text for note in drawn.layout.annotations]
    assert not any("repaired 0 and harmed 0" in text for text in said)  # a sham that does nothing is not told
    below = [text for text in said if "sham" in text or "left as it is" in text]
    sentences = (
        "a sham of this kind repaired 1 and harmed 8",
        "left as it is: nothing was better",
        "left as it is: nothing was better",
        "a sham of this kind repaired 0 and harmed 4",
    )
    assert below == [theme.small(text) for text in sentences]
    low, high = drawn.layout.xaxis2.range
    assert list(drawn.layout.xaxis2.tickvals) == [75, 80, 85, 90]  # those that are seen
    assert low < 72.9 < 90 < high < 100
    assert "┆ now 72.9 %" in said
    assert drawn.layout.xaxis2.ticktext[-1] == "90 %"
    assert "83.6 %" in said
    # The advised row, and no other, is tinted and says so.
    assert [text.startswith("<b>Query repair") for text in said if "advice" in text] == [True]
    assert [(shape.y0, shape.y1) for shape in drawn.layout.shapes if shape.type == "rect"] == [(-0.47, 0.5)]


def test_shams_are_told_where_they_are_drawn() -> None:
    did, nothing = SimpleNamespace(control=(1, 8)), SimpleNamespace(control=(0, 0))
    said = " A narrow grey bar is a check: the remedy with the signal of a wrong query."
    assert helps.of_shams([did, nothing]) == helps.of_shams([did, did]) == said  # type: ignore[list-item]
    assert helps.of_shams([nothing]) == ""  # type: ignore[list-item]


def test_only_the_colours_that_are_drawn_are_named() -> None:
    helping, harming, grey = (
        SimpleNamespace(result=SimpleNamespace(helps=is_helping, harms=is_harming))
        for is_helping, is_harming in ((True, False), (False, True), (False, False))
    )
    begin = "Right: Recall@1 and the 95 % interval of its change;"
    assert helps.of_colours([helping, grey]) == f"{begin} blue helps, grey may be chance."  # type: ignore[list-item]
    assert helps.of_colours([harming, grey]) == f"{begin} orange harms, grey may be chance."  # type: ignore[list-item]
    assert helps.of_colours([harming, helping]) == f"{begin} blue helps, orange harms."  # type: ignore[list-item]


def test_the_remedies_that_a_finding_names_are_bold() -> None:
    titles = ["query repair", "query repair, then words and vectors", "a prompt"]
    assert helps.named_in_bold("Query repair: it repaired 2.", titles) == "**Query repair**: it repaired 2."
    said = helps.named_in_bold("Between a prompt and query repair, then words and vectors.", titles)
    assert said == "Between **a prompt** and **query repair, then words and vectors**."


def test_what_is_not_measured_is_said() -> None:
    said = helps.not_shown(())
    assert "what re-ranking by a cross-encoder, another model, shorter texts or" in said
    assert "and what another model, shorter texts or training would do" in helps.not_shown({"cross-encoder": 1})
    assert "and what shorter texts or training would do" in helps.not_shown(("cross-encoder", "model"))


def test_second_models_on_this_machine_are_remedies(
    open_page: Open, tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that the operator allows: each is a row with its sham, what it costs, and a search that tries it."""
    scorer, other = saved_models.save_cross_encoder(tmp_path, "bert"), tiny.save_tiny(tmp_path / "other", seed=4)
    assert other_models.scores_pairs(str(scorer))
    assert not other_models.scores_pairs(str(other))
    with monkeypatch.context() as patched:
        patched.setattr(other_models, "read_json", lambda path: pytest.fail(f"{path} was read before"))
        assert other_models.scores_pairs(str(scorer))
    config = other / "config.json"
    said = config.read_text()
    config.write_text(json.dumps(json.loads(said) | {"architectures": ["BertForSequenceClassification"]}))
    assert other_models.scores_pairs(str(other))
    config.write_text(said)
    address = {"v": "what-helps", "corpus": page_states.small_corpus(), "m": str(tiny_folder("bert"))}
    app = open_page("diagnose", **address, tc=str(scorer), tm=str(other))
    app.session_state["data_remedies"] = True
    app = at_rest(app.run())
    assert not app.exception
    assert app.selectbox(key="w_tried_cross_encoder").value == str(scorer)
    assert app.selectbox(key="w_tried_model").value == str(other)
    table = plain_table(app, 0).set_index("remedy")
    assert table.index[0] == "as it is now"
    needs = {name: re.sub(r" \(.* once\)$", "", text) for name, text in table["needs"].iloc[1:].items()}
    assert needs == {kinds.TITLES[name]: kinds.NEEDS[name] for name in (*USUAL, "cross-encoder", "model")}
    tried = table.loc[["as it is now", "re-ranking by a cross-encoder", "another model"]]
    assert list(tried["bytes per text"]) == ["128"] * 3
    halves = [choice.split(" / ") for choice in table["chosen by each half"]]
    assert all(len(set(choice)) == len(choice) for choice in halves)  # what both chose stands there once
    assert all(float(value) > 0 for value in tried["ms per query (median)"])
    # What is taken along has numbers, not rounded, of which the screen shows the first digits.
    (taken,) = (item.value for item in app.dataframe if "sham repaired" in item.value)
    assert set(taken.select_dtypes("number")) == set(taken) - {"remedy", "chosen by each half", "needs"}
    assert [f"{value:.1f}" for value in taken["MRR"]] == list(table["MRR"])
    assert any(value != round(value, 1) for value in taken["MRR"])
    assert list(taken["repaired"].isna()) == [True, *[False] * (len(taken) - 1)]
    assert list(taken["Recall@1"][1:]) == sorted(taken["Recall@1"][1:], reverse=True)  # the best first
    assert list(taken["remedy"]) == list(table.index)
    drawn = figure(app, "remedies")
    dots = [trace["x"][0] for trace in drawn["data"] if trace["type"] == "scatter" and trace["mode"] == "markers"]
    np.testing.assert_allclose(dots, taken["Recall@1"][1:])
    notes = [note for note in drawn["layout"]["annotations"] if "sham" in note["text"] or "left as" in note["text"]]
    acted = taken["sham repaired"][1:] + taken["sham harmed"][1:] > 0
    is_left = [own.startswith("leave it") and " / " not in own for own in taken["chosen by each half"][1:]]
    assert len(notes) == (acted | np.array(is_left)).sum()
    (command,) = codes(app)["remedies"].code.commands
    assert [*command[command.index("--cross-encoder") :][:4]] == [
        "--cross-encoder",
        str(scorer),
        "--other-model",
        str(other),
    ]
    app.button(key="try_cross-encoder").click().run()
    assert (setting(app, "compare_with"), setting(app, "cross_encoder")) == ("rerank", str(scorer))


def test_the_queries_of_one_value_are_measured_among_all_texts(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    address = {"v": "what-helps", "corpus": page_states.small_corpus(), "m": str(tiny_folder("bert"))}
    corpus = caching.corpora().find(address["corpus"])
    assert corpus is not None
    parts = debugger_table.parts_of(corpus, "compressed")
    part = max(parts, key=lambda part: corpus.columns[part.partition("=")[0]].count(part.partition("=")[2]))
    app = at_rest(open_page("diagnose", **address, only=part))
    assert not app.exception
    assert app.selectbox(key="w_failed_only").value == part
    searched = len(set(corpus.texts))
    assert f"{searched} texts searched" in read_texts(app)
    assert read_texts(app).count(f"{searched} texts") == 1  # said once: above the figure, or in its finding
    ((name, *arguments),) = codes(app)["remedies"].code.commands  # the page's own: no other command measures a part
    assert (name, arguments[:4]) == ("numbers", ["--figure", "remedies", "--corpus", corpus.name])
    assert "train_half" not in [button.key for button in app.button]


def test_what_is_not_chosen_is_not_measured_and_says_so(read_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    """Also of the included cross-encoder, which can be chosen."""
    address = {"v": "what-helps", "corpus": page_states.small_corpus(), "m": str(tiny_folder("bert"))}
    app = at_rest(read_page("diagnose", **address))
    assert spec_of(EMBEDDED_CROSS_ENCODER_KEY).title in app.selectbox(key="w_tried_cross_encoder").options
    assert spec_of(EMBEDDED_KEY).title in app.selectbox(key="w_tried_model").options
    said = (
        "Not measured until you choose a model: re-ranking by a cross-encoder (“Also try a cross-encoder” above) "
        "and another model (“Also try another model” above)."
    )
    assert said in texts(app)
    table = plain_table(app, 0).set_index("remedy")
    for _, row in table.iloc[1:].iterrows():  # what both halves left has no change
        interval = "" if row["chosen by each half"].startswith("leave it;") else r"[+−]?\d+\.\d to [+−]?\d+\.\d"
        assert re.fullmatch(interval, row["change of Recall@1, 95 %"])


def test_search_is_not_offered_for_what_was_measured_among_the_right_texts_alone(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    address = {"v": "what-helps", "m": str(tiny_folder("bert"))}
    small = caching.corpora().find(page_states.small_corpus())
    assert small is not None
    asked = [*small.columns["compressed"][:-1], ""]
    own = Corpus("some.csv", small.texts, {"compressed": tuple(asked)}, small.report)
    caching.corpora().put(current.key_of(own), own)
    offered = {}
    for searched in ("all", "right"):
        app = at_rest(open_page("diagnose", **address, corpus=current.key_of(own), tx=searched))
        assert not app.exception
        offered[searched] = [button.key for button in app.button if (button.key or "").startswith("try_")]
    assert offered["all"]
    assert not offered["right"]


def test_what_helps_measures_the_abbreviations_of_the_address(
    open_page: Open, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = {"v": "what-helps", "corpus": page_states.small_corpus(), "m": str(tiny_folder("bert"))}
    corpus = caching.corpora().find(address["corpus"])
    assert corpus is not None
    word = corpus.columns["compressed"][0].split()[0].lower()
    given: list[Any] = []
    plain = kinds.RemedyInput
    monkeypatch.setattr(
        "dashboard.views.diagnosis.measured.RemedyInput",
        lambda *own, **more: given.append(own[3]) or plain(*own, **more),
    )
    app = at_rest(open_page("diagnose", **address, abbr=f"{word}=this very, q.z.=nothing"))
    assert not app.exception
    assert {word: "this very", "q.z.": "nothing"} in given
    assert app.text_input(key="w_abbreviations").value == f"{word}=this very, q.z.=nothing"
    assert "1 of 2 abbreviations stands in no query: q.z." in read_texts(app)
    (command,) = codes(app)["remedies"].code.commands
    assert command[command.index("--abbreviations") + 1] == f"{word}=this very,q.z.=nothing"
    given.clear()
    app = at_rest(app.text_input(key="w_abbreviations").set_value(f"{word}=that").run())
    assert given == [{word: "that"}]  # query repair alone is measured again
    app = at_rest(app.text_input(key="w_abbreviations").set_value(word).run())
    assert "not valid" in read_texts(app)
    assert not app.exception


def test_search_shows_no_other_prompt_where_it_puts_the_models_own_before_the_query() -> None:
    def has_search(name: str, prompt: str, *chosen: str) -> bool:
        request = SimpleNamespace(query_options=lambda documents: SimpleNamespace(prompt=prompt))
        found: Any = SimpleNamespace(
            request=request, indexes=SimpleNamespace(documents=SimpleNamespace(info=SimpleNamespace(options=None)))
        )
        row: Any = SimpleNamespace(name=name, result=SimpleNamespace(chosen=chosen))
        return helps._has_search(found, row)

    assert not has_search("prompt", "query: ", "no prompt", folds.LEAVE)
    assert has_search("prompt", "", "“query: ”", folds.LEAVE)
    assert has_search("hybrid", "query: ", folds.LEAVE, "z scores, weight of words 0.2")
    assert not has_search("repair", "", folds.LEAVE, folds.LEAVE)  # what both halves left is not tried


def test_a_hybrid_list_is_tried_as_it_was_measured_and_what_both_halves_left_has_no_interval() -> None:
    now = np.array([1, 2, 1, 3])
    options = {name: np.array([1, 1, 2, 3]) for name in kinds.FUSIONS}

    def row(*chosen: str) -> Any:
        ranking = folds.RemedyRanking("hybrid", ranks=now, now=now, chosen=(chosen[0], chosen[1]))
        return SimpleNamespace(name="hybrid", title="words and vectors", options=options, result=ranking)

    pairs = SimpleNamespace(queries=SimpleNamespace(texts=("a", "b", "c", "d")))
    found: Any = SimpleNamespace(pairs=pairs, layer=2, pooling="mean")
    told = helps._in_search(found, row(folds.LEAVE, "z scores, weight of words 0.2"), np.array([1, 3]))
    values = ("compare_with", "hybrid_with", "fusion_by", "fusion_weight")
    assert tuple(told[name] for name in values) == ("fused", ("bm25",), "z", 20)
    for option, fusion in kinds.FUSIONS.items():  # Search puts together with the very weights, but for a common factor
        told = helps._in_search(found, row(option, option), np.array([1, 3]))
        by, weight, k = (told[name] for name in ("fusion_by", "fusion_weight", "fusion_k"))
        settings = (
            FusionSettings(rank_constant=k) if by == "rrf" else FusionSettings(weight, {"weighted": "rrf"}.get(by, by))
        )
        opened = settings.of(2)
        assert (opened.method, opened.rank_constant, opened.depth) == (
            fusion.method,
            fusion.rank_constant,
            fusion.depth,
        )
        assert np.allclose(np.divide(opened.weights, sum(opened.weights)), fusion.weights)
    left = row(folds.LEAVE, folds.LEAVE)
    assert all(np.isnan(value) for value in helps._ends("change", left, left.result.change).values())
    assert helps._best_left(left).endswith(" has Recall@1 50.0 %")
