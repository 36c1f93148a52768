"""Methods that name the important words, each put to the same test: a deletion curve."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.leave_one_out import words_of
from components.analysis.why.deletion import RANDOM_ORDERS, MethodComparison, compare_methods, most_texts
from components.analysis.why.word_scores import LEFT_OUT, METHOD_NAMES, METHODS, RANDOM, PairSimilarity, first_words
from components.charts import curves, heatmap
from components.charts.theme import number, signed
from components.charts.why import end_labels, left_out
from components.numbers import apart, enumerated
from components.shown_code.arrays import Input
from components.shown_code.code import Command
from components.shown_code.vectors import falls
from dashboard import caching, state
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages, pair_choice, wording
from dashboard.views.why import context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from components.analysis.why.deletion import DeletionCurve
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling, TokenizedSentence
    from components.shown_code.code import AnyCode

ORDERS = {"first": "Most important", "last": "Least important"}
FROM = {"one": "One text at a time", "both": "Both texts"}
FROM_HELP = (
    "One text at a time: the other stays whole, and the curve is the mean of the two. Both texts: their words are one list. Of "
    "texts that share most words, taking the same word from both leaves them as similar as before, so that an order can look "
    "bad although its words matter."
)
ORDER_HELP = "Least important first: the cosine should stay high for long."
IN_FEW_WORDS = {
    "ledger": "what the vector at its place adds, with the neighbours that attention mixed into it",
    "left_out": "how far the cosine falls when the word is missing",
    "rollout": "its share by attention alone, without a sign and so in grey",
    "gradient": "how fast the cosine rises when the word's vector grows",
}
FIRST_WORDS = 100  # of each text: so many are tested at once, and more on request
MOST_WORDS = 500  # of each text, even on request
WITHOUT_SIGN = ("rollout",)
_PACES = "_seconds_per_token"  # session key
SAMPLE_TOKENS = 1024  # read to measure how fast this machine is
MOST_NAMED = 3  # words in the sentence above the figure
MOST_ROWS = 40  # words in the figure of scores
SAME = 0.005  # a difference of mean cosines that two decimals would not show
# docs/measurements.md, "Which words matter", as tests/benchmarks/test_deletion.py printed it: method to the mean area, and its
# difference to random with the 95 % interval, for words removed from one text at a time and from both.
OVER_MANY_PAIRS: dict[str, tuple[str, str, str, str]] = {
    "ledger": ("0.405", "−0.218 (−0.229 to −0.207)", "0.587", "+0.028 (+0.007 to +0.050)"),
    "left_out": ("0.372", "−0.250 (−0.260 to −0.241)", "0.480", "−0.079 (−0.097 to −0.059)"),
    "rollout": ("0.484", "−0.139 (−0.151 to −0.126)", "0.622", "+0.063 (+0.043 to +0.084)"),
    "gradient": ("0.681", "+0.058 (+0.048 to +0.068)", "0.510", "−0.049 (−0.067 to −0.030)"),
    "random": ("0.623", "0", "0.559", "0"),
}
MANY_PAIRS = "200 pairs of a sentence and its compressed form (included model, layer 6, mean)"
GENERAL = {
    "one": "There, leave one out and share of score find the words best, and gradient × input does worse than random orders.",
    "both": "There, leave one out finds the words best, then gradient × input; share of score and attention rollout "
    "do worse than random orders.",
}


def draw(backend: Backend) -> None:
    """The deletion curves of all methods, the words' scores by each, and the areas."""
    if messages.no_sentences():
        return
    context.choose_best_pair(backend)
    with controls.row():
        pair = pair_choice.choose(always=True)
        with controls.options():
            layer = controls.layer(backend.facts.layers)
            pooling = controls.sentence_vector([backend])
            from_both = controls.choice("deletion_from", "Remove words from", FROM, FROM_HELP) == "both"
            controls.choice("deletion_order", "Words removed first", ORDERS, ORDER_HELP)
    messages.cross_encoder_note([backend])
    messages.head_note([backend], pooling, layer)
    first, second = pair.first, pair.second or pair.first
    length = controls.length_for(backend) or backend.own_max_length  # as in the other views
    sentences = backend.tokenize([first, second], max_length=length)
    different = dict(zip(pair.names, sentences, strict=True))
    messages.truncation(list(different.values()), names=[(name, name) for name in different])
    most_words = _most_words(backend, sentences, layer, pooling, length)
    first, second = (
        first_words(lambda text: backend.tokenize([text], max_length=length)[0], text, most_words)
        for text in (first, second)
    )

    def compare(report_progress: ReportProgress, is_stopped: IsStopped) -> MethodComparison:
        similarity = PairSimilarity.of(backend, first, second, layer, pooling, length)
        return compare_methods(similarity, from_both, progress=report_progress, is_stopped=is_stopped)

    key = ("deletion", backend.spec.key, backend.revision, first, second, layer, pooling, length, from_both)
    title = f"Removing the words of {pair.names[0]} and {pair.names[1]}"
    found = requests.latest(
        key, title, compare, "deletion", "removing words", "texts", view="methods", jobs=caching.deletions()
    )
    without_words = [name for name, count in zip(pair.names, found.pair.counts, strict=True) if not count]
    if without_words:
        st.info(
            "Neither text has a word that could be removed."
            if len(without_words) == 2
            else f"{without_words[0].capitalize()} has no word that could be removed."
        )
        return
    if first == second and found.first:
        st.info("A and B are the same text: each word matters only because it is missing in one of the two.")
    pooling_name = wording.POOLING_NAMES[pooling]
    place = f"layer {layer}, {pooling_name if pooling == 'cls' else pooling_name.lower()}"
    texts = [text for side in zip(*found.pair.without_each(), strict=True) for text in side]
    code = falls(Input(backend, texts, length), layer, pooling)
    _left_out(found, place, code)
    _scores(found, place)
    if found.first:
        figures.subheader("Which method finds the words that matter?")
        _curves(found, place)
        _areas(found)
    else:
        st.info("Each text has only one word, and the last word of a text is never removed: there is no curve to draw.")


def _most_words(
    backend: Backend, sentences: Sequence[TokenizedSentence], layer: int, pooling: Pooling, length: int
) -> int:
    """How many words of each text are tested; of long texts the choice is drawn, with the time that all words take."""
    first, second = (len(words_of(sentence)) for sentence in sentences)
    if max(first, second) <= FIRST_WORDS:
        return FIRST_WORDS
    counts = min(first, MOST_WORDS), min(second, MOST_WORDS)
    texts = most_texts(counts)
    # Each text without one word is whole, the others are half as long on average; the gradients take some time too.
    tokens = 0.7 * (sum(counts) + texts) * max(map(len, sentences))
    seconds = tokens * _seconds_per_token(backend, sentences, layer, pooling, length)
    work = f"up to {texts:,} texts for the model to read, about {wording.duration(seconds)}"
    is_too_long = max(first, second) > MOST_WORDS
    with st.container(horizontal=True, vertical_alignment="center", key="row_long_texts"):
        tests_all = controls.switch("all_words", f"{MOST_WORDS} words" if is_too_long else "All words")
        tested = MOST_WORDS if tests_all else FIRST_WORDS
        if tests_all and not is_too_long:
            text = f"**All {first:,} and {second:,} words are tested:** {work}."
        else:
            most = " (the most that can be)" if tests_all else ""
            text = f"**Long texts: the first {tested} words of each are tested{most}**, of {first:,} and {second:,}. "
            text += f"This takes {work}." if tests_all else f"With {MOST_WORDS if is_too_long else 'all'}: {work}."
        st.markdown(f":orange[:material/straighten:] {text}", width="stretch")
    return tested


def _seconds_per_token(
    backend: Backend, sentences: Sequence[TokenizedSentence], layer: int, pooling: Pooling, length: int
) -> float:
    """How long this machine takes to read a token of such texts; measured once in a session."""
    paces: dict[tuple[str, str], float] = st.session_state.setdefault(_PACES, {})
    model = (backend.spec.key, backend.revision)
    if model not in paces:
        sample = max(sentences, key=len).text[:600]
        (whole,) = backend.tokenize([sample], max_length=length)
        # A batch, as in the work itself: a token read alone takes several times as long. All its texts differ.
        texts = [sample[cut:] for cut in range(min(math.ceil(SAMPLE_TOKENS / len(whole)), len(sample) // 2 + 1))]
        tokens = sum(map(len, backend.tokenize(texts, max_length=length)))
        options = backend.embed_options([layer], [pooling], length, precision="float32")
        for _ in range(2):  # the first time a model reads anything takes longer
            started = time.perf_counter()
            backend.embed(texts, options=options)
            paces[model] = (time.perf_counter() - started) / tokens
    return paces[model]


def _named(comparison: MethodComparison, index: int) -> str:
    word = comparison.pair.words[index]
    return f"“{word.text}” ({'B' if word.in_pair else 'A'})"


def left_out_finding(comparison: MethodComparison) -> str:
    """Without which word the cosine falls most, and how far; or that it falls without none."""
    falls = comparison.scores[LEFT_OUT]
    order = np.argsort(-falls, kind="stable").tolist()
    before, after = apart(comparison.cosine, comparison.cosine - float(falls[order[0]]))
    if falls[order[0]] < SAME:
        return (
            f"No single word matters: without any one of them, the cosine of **{before}** hardly falls or even rises."
        )
    most = messages.escape(_named(comparison, order[0]))
    fall = number(float(falls[order[0]]), 2)  # as the bar has it, which is another number than the cosine that is left
    said = f"Without {most} the cosine falls by {fall}, from **{before}** to **{after}**"
    if len(order) > 1 and falls[order[1]] >= SAME:
        second = number(float(falls[order[1]]), 2)
        return f"{said}; next is {messages.escape(_named(comparison, order[1]))}, by {second}."
    return f"{said}; without any other word it does not fall."


def _left_out(comparison: MethodComparison, place: str, code: AnyCode) -> None:
    """The first picture: how far the cosine falls without each word."""
    pair, falls = comparison.pair, comparison.scores[LEFT_OUT]
    shown = np.sort(np.argsort(-np.abs(falls), kind="stable")[:MOST_ROWS])  # in the order of the texts
    sides = [[row for row in shown.tolist() if pair.words[row].in_pair == in_pair] for in_pair in (False, True)]
    best = int(falls.argmax())
    most = next(((side, rows.index(best)) for side, rows in enumerate(sides) if best in rows), None)
    message = left_out_finding(comparison)
    if len(shown) < len(falls):
        message += f" Shown are the {MOST_ROWS} of {len(falls)} words that change it most."
    figures.figure(
        left_out.falls(
            [[pair.words[row].text for row in rows] for rows in sides],
            [falls[rows] for rows in sides],
            ["Sentence A", "Sentence B"],
            f"Without each word, {place}",
            most if falls[best] >= SAME else None,
        ),
        key="words_left_out",
        code=code,
        alt=f"Bars: how far the cosine falls without each of {len(shown)} words",
        message=message,
        table=lambda: pd.DataFrame(
            {
                "text": ["B" if word.in_pair else "A" for word in pair.words],
                "word": [word.text for word in pair.words],
                "cosine without it": (comparison.cosine - falls).round(5),
                "fall": falls.round(5),
            }
        ),
        read="Each word is left out in turn, and the model reads what is left of its sentence; the other sentence stays whole. "
        "A blue bar says how far the cosine falls without the word: the sentences are less similar then. An orange bar hangs "
        "down: without this word they are more similar. The word without which it falls most has the full colour.",
        not_shown="Words that only matter together: of two words that say the same, leaving out one shows nothing. A sentence "
        "without one of its words can be unlike any that the model was trained on. Other methods name other words: see below.",
    )


def _message(comparison: MethodComparison, by_way: Mapping[str, DeletionCurve], most_first: bool) -> str:
    """Which method fares best with this pair, and by how much against random."""
    ranked = comparison.by_area if most_first else sorted(comparison.by_area, key=lambda name: -by_way[name].area)
    best, chance = ranked[0], by_way[RANDOM].area
    area = by_way[best].area
    gain = chance - area if most_first else area - chance
    of_chance, of_best, of_pair = apart(chance, area, comparison.cosine)
    if gain < SAME:
        return (
            f"No method does better than chance with this pair: mean cosine along the curve {of_chance} in random "
            f"orders, and {of_best} at best ({METHOD_NAMES[best]})."
        )
    orders = by_way[best].removals  # one of both texts, or one of each
    words = "; ".join(
        ", then ".join(messages.escape(_named(comparison, index)) for index in order[: -(-MOST_NAMED // len(orders))])
        for order in orders
    )
    lead = "finds the words of this pair best" if most_first else "knows best which words of this pair can be spared"
    sentence = (
        f"**{METHOD_NAMES[best]}** {lead}: {words}. Mean cosine along its curve **{of_best}**, in random "
        f"orders {of_chance}."
    )
    if comparison.cosine < 0:
        sentence += (
            f" The whole pair's cosine is negative ({of_pair}): there is no similarity for the words to "
            "hold, and the orders say little."
        )
    return sentence


def _curves(comparison: MethodComparison, place: str) -> None:
    most_first = state.get("deletion_order") == "first"
    by_way = comparison.first if most_first else comparison.last
    from_both = state.get("deletion_from") == "both"
    names, chance = list(by_way), by_way[RANDOM]
    steps, is_mean = range(len(chance.shares)), len(chance.removals) == 2

    def last_words(method: str, step: int) -> str:
        curve = by_way[method]
        counted = zip(curve.removals, curve.counts(step), strict=True)
        return " and ".join(_named(comparison, removal[count - 1]) for removal, count in counted if count)

    def details(method: str, step: int) -> str:
        counted = zip(chance.counts(step), chance.removals, strict=True)
        text = " and ".join(f"{count} of {len(removal)}" for count, removal in counted) + " removed"
        return text if method == RANDOM or step == 0 else f"{text}, the last {last_words(method, step)}"

    def table() -> pd.DataFrame:
        columns: dict[str, object] = {"share removed (%)": (100 * chance.shares).round(1)}
        for name, curve in by_way.items():
            columns[METHOD_NAMES[name]] = curve.cosines.round(5)
            if name != RANDOM:
                columns[f"{METHOD_NAMES[name]}: last word"] = [last_words(name, step) for step in steps]
        return pd.DataFrame(columns)

    which = ORDERS["first" if most_first else "last"].lower()
    better = "A curve that falls early" if most_first else "A curve that stays high for long"
    chart = curves.removal_curves(
        100 * chance.shares,
        np.array([by_way[name].cosines for name in names]),
        [METHOD_NAMES[name] for name in names],
        [None if name == RANDOM else list(METHODS).index(name) for name in names],
        [[details(name, step) for step in steps] for name in names],
        f"{which.capitalize()} first, {place}",
        f"removed of all words but the last{' of each' if from_both else ', mean of both' if is_mean else ''}, %",
    )
    ends = sorted(float(by_way[name].cosines[-1]) for name in names)
    figures.figure(
        end_labels.label_ends(chart),
        key="deletion_curves",
        code=Command(compare_methods),
        alt=f"Cosine of texts A and B while their words are removed in the order of {len(names)} methods",
        message=_message(comparison, by_way, most_first),
        table=table,
        read=f"Each method sorts the words of {'both texts into one list' if from_both else 'each text'}, the {which} first. "
        f"They are removed one after the other{'' if from_both else ' while the other text stays whole'}, and the model reads "
        f"what is left. {better} belongs to a method that found the words which hold the similarity "
        "([Samek et al. 2017](https://doi.org/10.1109/TNNLS.2016.2599820), "
        "[DeYoung et al. 2020](https://aclanthology.org/2020.acl-main.408/)). The dotted line is the mean of "
        f"{RANDOM_ORDERS} random orders. A text's last word is never removed: at 100 % one word is left"
        + (" in each text." if from_both else "; the curve is the mean of those of A and of B.")
        + (f" {len(steps) - 1} steps are measured." if len(steps) <= max(map(len, chance.removals)) else ""),
        not_shown="What the model does with natural texts: a text without some of its words can be unlike any that it was "
        "trained on, and its cosine can rise again. “Leave one out” removes words itself, so that this test is close to "
        "it. Punctuation stays, and a curve says nothing about words that only matter together."
        + (
            " Where the texts share most words, an order that takes the same word from both leaves them similar: then remove "
            "words from one text at a time (Options)."
            if from_both
            else ""
        ),
    )
    means = "Each curve is the mean of two: words removed from A while B stays whole, and from B while A does. "
    last = "A text's last word stays" + (
        f", and each order leaves another one: so the curves end apart, at {number(ends[0], 2)} to {number(ends[-1], 2)}."
        if ends[-1] - ends[0] >= SAME
        else "."
    )
    st.caption(f"{means if is_mean else ''}{last}")


def _scores(comparison: MethodComparison, place: str) -> None:
    """The scores of each word by each method, as cells."""
    pair, methods = comparison.pair, list(comparison.scores)
    columns = [METHOD_NAMES[name] for name in methods]
    values = np.array([comparison.scaled(name) for name in methods]).T  # [word, method]
    words = [word.text for word in pair.words]
    texts = np.array(["B" if word.in_pair else "A" for word in pair.words])
    numbers = [*range(1, pair.counts[0] + 1), *range(1, pair.counts[1] + 1)]
    shown = np.sort(np.argsort(-np.abs(values).max(axis=1), kind="stable")[:MOST_ROWS])  # in the order of the texts

    def table() -> pd.DataFrame:
        raw = {METHOD_NAMES[name]: comparison.scores[name].round(6) for name in methods}
        return pd.DataFrame({"text": texts, "number": numbers, "word": words, **raw})

    reasons = " ".join(
        f"{METHOD_NAMES[name]} is missing: {reason}." for name, reason in comparison.not_applicable.items()
    )
    message = _agreement(comparison)
    if len(shown) < len(words):
        message += f" Shown are the {MOST_ROWS} of {len(words)} words with the largest scores; the table has all."
    figures.subheader("Do other methods name the same words?")
    figures.figure(
        heatmap.word_scores(
            values[shown],
            [f"{texts[row]}{numbers[row]}  {words[row]}" for row in shown],
            columns,
            int((texts[shown] == "A").sum()),
            f"Scores of the words, {place}",
            without_sign=[column for column, name in enumerate(methods) if name in WITHOUT_SIGN],
            dark=controls.is_dark(),
        ),
        key="word_scores",
        code=Command(compare_methods),
        alt=f"Scores of {len(shown)} words by {len(methods)} methods",
        message=message,
        table=table,
        read="A row is a word, a column a method. Blue: the similarity hangs on the word; orange: the word holds the texts "
        "apart; grey: the method gives no sign. Each column is divided by its largest value, up or down, as they measure "
        "different things; the table has the scores themselves. **Share of score**: what its tokens add to the cosine. "
        "**Leave one out**: the fall of the cosine without the word. **Attention rollout**: the word's share of its own "
        "text's vector by attention alone. "
        "**Gradient × input**: the slope of the cosine when the word's vector is stretched. " + reasons,
        not_shown="Which method is right: the curves test that. The share of score counts what stands at a word's place at "
        "this layer, which contains its neighbours too; rollout does not know the other text; the gradient is that of an "
        "infinitely small change; and of two words that say the same, leaving out one shows nothing.",
    )

    said = " · ".join(f"**{METHOD_NAMES[name]}**: {IN_FEW_WORDS[name]}" for name in methods)
    st.caption(f"{said}. Each column is divided by its largest value, up or down.")


def _agreement(comparison: MethodComparison) -> str:
    """Which word each method rates highest; a word that pulls down has a value below 0, which is no high one."""
    by_word: dict[str, list[str]] = {}
    for name, scores in comparison.scores.items():
        by_word.setdefault(_named(comparison, int(scores.argmax())), []).append(METHOD_NAMES[name])
    down = [
        f" By {METHOD_NAMES[name]}, {messages.escape(_named(comparison, int(scores.argmin())))}, which keeps the two apart, "
        "counts even more."
        for name, scores in comparison.scores.items()
        if -scores.min() > scores.max()
    ]
    if len(by_word) == 1:
        return f"All methods rate {messages.escape(next(iter(by_word)))} highest.{''.join(down)}"
    parts = [f"{messages.escape(word)} by {enumerated(methods)}" for word, methods in by_word.items()]
    return f"Rated highest: {'; '.join(parts)}.{''.join(down)}"


def _areas(comparison: MethodComparison) -> None:
    from_both = state.get("deletion_from") == "both"
    names = [*comparison.by_area, RANDOM]
    names.sort(key=lambda name: comparison.first[name].area)
    chance = comparison.first[RANDOM].area
    rows = []
    for name in names:
        area = comparison.first[name].area
        row = {
            "method": METHOD_NAMES[name],
            "most important first": number(area),
            "against random": "" if name == RANDOM else signed(area - chance, 3),
            "least important first": number(comparison.last[name].area),
        }
        over_many = OVER_MANY_PAIRS.get(name, ("", "", "", ""))[3 if from_both else 1]
        row["over 200 pairs"] = over_many.split(" (")[0]  # without its interval: the table has to fit on a phone
        rows.append(row)
    with st.container(key="deletion_areas"):
        figures.plain_table(pd.DataFrame(rows))
    st.caption(
        "The area under a curve, as the mean cosine along it. Most important first: smaller is better. Least important first: "
        f"larger is better. A single pair proves little: the last column is the mean difference to random over "
        f"{MANY_PAIRS}; docs/measurements.md has the intervals. {GENERAL[state.get('deletion_from')]}"
    )
