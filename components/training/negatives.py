"""Wrong answers for pairs, and the rows that each objective learns from.

Where a wrong answer comes from:
- random: any other row's answer. Most are so far off that little is learnt from them.
- bm25: the answer that shares the most telling words with the query, and is wrong.
- model: the answer that the model itself, before training, holds for the most similar one. The rule is that of
  sentence_transformers.util.mine_hard_negatives with a relative margin: answers that are nearly as similar as the correct
  one are passed over, since many of them are correct too (de Souza et al. 2024). Ours takes vectors, so that a page can
  show examples without loading that library; tests compare the two.

A wrong answer is never one of a row that shares a text with the query's row, directly or through other rows. What this
cannot see is an answer that is correct in other words: look at some of the rows before training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from components.arrays import Float32, Int64, read_only, unit
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped
from components.numbers import counted
from components.retrieval.corpora.readers.limits import never
from components.retrieval.corpora.rows.roles import LABEL, NEGATIVE
from components.retrieval.corpora.rows.scores import NEGATIVE_LABELS, POSITIVE_LABELS, label_word
from components.retrieval.evaluation.pair_runs import pairs_of_rows
from components.training.data import Split, TrainingData, group_numbers, normalised
from components.training.objectives import objective
from components.training.settings import NegativesKind, TrainingSettings
from components.words.unicode_words import deletable

Role = Literal["query", "document"]
Embed = Callable[[Sequence[str], Role], Float32]  # texts to vectors float32 [text, dim]
AddNegatives = Callable[[TrainingData], TrainingData]  # pairs to triplets

RELATIVE_MARGIN = 0.05  # a wrong answer's score lies so much below that of the correct one, as a share of it
ANCHORS_AT_ONCE = 256
GOOD_SCORE = 0.8  # of 0..1: pairs with at least this score count as partners
BINARY_NAMES = ("does not belong", "belongs together")


@dataclass(frozen=True, eq=False)
class Negatives:
    """A wrong answer for each pair."""

    kind: NegativesKind
    rows: Int64  # [pair], the row whose answer is the wrong answer; read-only
    at_random: int  # pairs for which the ranking had no wrong answer, so that one was drawn


def find_negatives(
    pairs: TrainingData,
    kind: NegativesKind,
    seed: int = 0,
    embed: Embed | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = never,
) -> Negatives:
    """A wrong answer for each pair. `embed` gives the model's vectors, for "model". `progress` counts pairs.

    Raises InputError where shared texts connect all pairs, so that no answer is known to be wrong; Stopped; and ValueError
    for the kind "none", for rows that are no pairs, and for "model" without `embed`.
    """
    if kind == "none" or pairs.kind != "pairs":
        raise ValueError(f"wrong answers of kind {kind} for {pairs.kind}")
    groups = group_numbers(pairs)
    if groups.max() == 0:
        raise InputError(
            f"All pairs of {pairs.name} share texts with each other, directly or through other pairs.",
            "The pairs must have different texts, so that one's answer is wrong for another.",
            "Add pairs, or choose an objective that needs no wrong answers.",
        )
    if kind == "random":
        rows, missing = np.full(len(pairs), -1), 0
    else:
        scores = _bm25_scores(pairs) if kind == "bm25" else _cosines(pairs, embed)
        rows = _hardest(scores, groups, kind, progress, is_stopped)
        missing = int(np.count_nonzero(rows < 0))
    rows = _filled(rows, groups, np.random.default_rng(seed))
    progress(len(pairs), len(pairs))
    return Negatives(kind, read_only(rows), missing)


def training_rows(
    settings: TrainingSettings,
    objective_key: str,
    data: TrainingData,
    embed: Embed | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = never,
) -> TrainingData:
    """The rows that an objective learns from, made from `data` of any kind that it takes.

    Make them from each side of the split apart: wrong answers then come from the same side. Rows that the objective has no
    use for (such as "neutral" for the contrastive one) are counted in `dropped`. Raises InputError for an unknown objective,
    for rows of a kind that it does not take, and where fewer than two rows are left; and as `find_negatives` does.
    """
    target = objective(objective_key)
    if data.kind not in target.takes:
        raise InputError(
            f"{data.name} holds {data.kind}, from which {target.name} cannot learn.",
            f"It learns from data of these kinds: {', '.join(target.takes)}.",
            "Choose another objective, or other data.",
        )

    def with_negatives(pairs: TrainingData) -> TrainingData:
        """Triplets: each pair with its wrong answer."""
        negatives = find_negatives(pairs, settings.negatives, settings.seed, embed, progress, is_stopped)
        wrong = tuple(pairs.columns["positive"][row] for row in negatives.rows)
        return replace(pairs, kind="triplets", columns={**pairs.columns, NEGATIVE: wrong})

    if target.rows == "sentences":
        rows = _sentences(data)
    elif target.rows == "pairs":
        rows = _partners(settings, data, with_negatives)
    elif target.rows == "triplets":
        rows = _triplets(settings, data, with_negatives)
    elif data.kind == "scored" or (target.rows == "labelled" and data.kind == "labelled"):
        rows = data
    else:
        rows = _binary(settings, data, with_negatives)
        if target.rows == "scored":
            scores = read_only(np.asarray(rows.labels, np.float32))
            rows = replace(rows, kind="scored", labels=scores, label_names=())
    if len(rows) < 2:
        raise InputError(
            f"{data.name} has {counted(len(rows), 'row')} from which {target.name} can learn.",
            "It needs at least two.",
            "Choose another objective, or data with more rows.",
        )
    return rows


def row_counts(settings: TrainingSettings, data: TrainingData, split: Split) -> dict[str, tuple[int, int]]:
    """How many rows each objective makes of the training part and of the held-out part.

    Raises InputError where an objective cannot learn from one of them, or be measured on it.
    """
    # Where wrong answers come from changes no number, and those of BM25 and the model take long.
    quick = settings if settings.negatives == "none" else replace(settings, negatives="random")
    sides = [data.take(rows) for rows in (split.train, split.held_out)]
    counts = {key: [len(training_rows(quick, key, side)) for side in sides] for key in settings.objectives}
    return {key: (train, held_out) for key, (train, held_out) in counts.items()}


def few_answers(settings: TrainingSettings, data: TrainingData, split: Split) -> tuple[str, ...]:
    """What follows from many queries that have few answers, a sentence each; none where it changes nothing."""
    if data.kind not in ("pairs", "triplets"):
        return ()
    queries, answers = data.columns["anchor"], data.columns["positive"]
    learnt = len({normalised(answers[row]) for row in split.train})
    held_out = split.held_out.tolist()
    pairs = pairs_of_rows("held-out rows", [answers[row] for row in held_out], [queries[row] for row in held_out])
    said = []
    if len(pairs) and not pairs.can_be_measured:
        said.append(
            f"The {len(held_out):,} held-out rows have {pairs.why_not_measured}: whether queries find theirs cannot be "
            "measured, since each would find one whatever the model does. Steps are compared by the held-out loss alone."
        )
    if "mnrl" in settings.objectives and learnt < min(settings.batch_size, len(split.train)):
        said.append(
            f"The training rows have {learnt:,} different answers, and a batch holds each at most once: at most {learnt:,} "
            f"of its {settings.batch_size} rows are filled, and a query learns beside {counted(learnt - 1, 'wrong answer')}."
        )
    return tuple(said)


def dataset_columns(settings: TrainingSettings, objective_key: str, rows: TrainingData) -> dict[str, list]:
    """The columns of `training_rows` in the order in which the objective's loss takes them, and "label" if it has labels.

    SimCSE gets every sentence twice. TSDAE gets it with words deleted, then whole; the words are drawn once, by the seed
    and the row, so that a run which is resumed sees the same ones.
    """
    columns: dict[str, list] = {name: list(texts) for name, texts in rows.columns.items()}
    if objective_key == "simcse":
        return {"anchor": columns["sentence"], "positive": list(columns["sentence"])}
    if objective_key == "tsdae":
        random = np.random.default_rng(settings.seed)
        damaged = [with_deleted_words(text, settings.deleted_share, random) for text in columns["sentence"]]
        return {"damaged": damaged, "sentence": columns["sentence"]}
    if rows.labels is not None:
        columns[LABEL] = rows.labels.tolist()
    return columns


def with_deleted_words(text: str, share: float, random: np.random.Generator) -> str:
    """A text without about this share of its words, at random; one always stays.

    A word is what stands between two spaces; in a script without spaces each character is one.
    """
    runs = deletable(text)
    count = sum(map(len, runs))
    stays = random.random(count) >= share
    if count and not stays.any():
        stays[random.integers(count)] = True
    kept = iter(stays.tolist())
    return " ".join(filter(None, ("".join(part for part in run if next(kept)) for run in runs)))


def _bm25_scores(pairs: TrainingData) -> Callable[[slice], Float32]:
    from components.retrieval.search.lexical import BM25, make_ranker

    ranker = make_ranker("bm25", pairs.columns["positive"])
    assert isinstance(ranker, BM25)
    anchors = pairs.columns["anchor"]
    return lambda block: np.stack([ranker.scores(anchor) for anchor in anchors[block]])


def _cosines(pairs: TrainingData, embed: Embed | None) -> Callable[[slice], Float32]:
    if embed is None:
        raise ValueError("wrong answers by the model need its vectors")
    anchors = unit(np.asarray(embed(pairs.columns["anchor"], "query"), np.float32))
    positives = unit(np.asarray(embed(pairs.columns["positive"], "document"), np.float32))
    return lambda block: np.asarray(anchors[block] @ positives.T, np.float32)


def _hardest(
    scores_of: Callable[[slice], Float32],
    groups: Int64,
    kind: NegativesKind,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> Int64:
    """For each pair the row with the highest score in another group, int64 [pair]; -1 where none qualifies.

    By BM25 it must share a word with the query. By the model its score must lie below that of the correct answer by the
    relative margin. Of equal scores the first counts.
    """
    count = len(groups)
    hardest = np.full(count, -1, np.int64)
    for start in range(0, count, ANCHORS_AT_ONCE):
        if is_stopped():
            raise Stopped
        block = slice(start, min(start + ANCHORS_AT_ONCE, count))
        scores = scores_of(block).astype(np.float64)  # [anchor, answer]
        own = scores[np.arange(len(scores)), np.arange(block.start, block.stop)]
        scores[groups[block, None] == groups[None, :]] = -np.inf
        if kind == "model":
            scores[scores > (own - RELATIVE_MARGIN * np.abs(own))[:, None]] = -np.inf
        else:
            scores[scores <= 0] = -np.inf
        best = scores.argmax(axis=1)
        hardest[block] = np.where(np.isneginf(scores[np.arange(len(scores)), best]), -1, best)
        progress(block.stop, count)
    return hardest


def _filled(rows: Int64, groups: Int64, random: np.random.Generator) -> Int64:
    """The rows, where each -1 becomes a random row of another group."""
    filled = rows.copy()
    open_rows = np.flatnonzero(filled < 0)
    while len(open_rows):
        drawn = random.integers(len(groups), size=len(open_rows))
        fits = groups[drawn] != groups[open_rows]
        filled[open_rows[fits]] = drawn[fits]
        open_rows = open_rows[~fits]
    return filled


def _sentences(data: TrainingData) -> TrainingData:
    """Every different text of the rows."""
    texts = tuple(dict.fromkeys(text for row in zip(*data.columns.values(), strict=True) for text in row))
    return replace(data, kind="sentences", columns={"sentence": texts}, labels=None, label_names=())


def _partners(settings: TrainingSettings, data: TrainingData, with_negatives: AddNegatives) -> TrainingData:
    """Pairs of texts that belong together; with a hard wrong answer where the settings ask for one."""
    if data.kind == "triplets":
        return data
    if data.kind == "scored":
        assert data.labels is not None
        data = _as_pairs(
            data, np.flatnonzero(data.labels >= np.float32(GOOD_SCORE)), f"score below {GOOD_SCORE:g} of 1"
        )
    elif data.kind == "labelled":
        positive, _ = binary_classes(data)
        data = _as_pairs(data, np.flatnonzero(data.labels == positive), f"not {data.label_names[positive]}")
    if len(data) < 2 or not wrong_of_each(settings, data):
        return data  # the other rows of a batch are random wrong answers already
    return with_negatives(data)


def wrong_of_each(settings: TrainingSettings, data: TrainingData) -> int:
    """How many wrong answers of its own a row has, where the others of a batch are wrong answers too."""
    return len(_wrong_answers(data)) or int(settings.negatives not in {"none", "random"})


def _triplets(settings: TrainingSettings, data: TrainingData, with_negatives: AddNegatives) -> TrainingData:
    """Triplets with one wrong answer each: rows with several make a row of each."""
    if data.kind == "triplets":
        right, wrong = data.columns["positive"], _wrong_answers(data)
        columns = {"anchor": data.columns["anchor"] * len(wrong), "positive": right * len(wrong)}
        return replace(data, columns={**columns, NEGATIVE: tuple(text for side in wrong for text in side)})
    if data.kind == "labelled":
        return _by_first_text(data)
    if settings.negatives == "none":
        raise InputError(
            "The triplet objective has no wrong answers.",
            "It needs triplets, or pairs with a way to find wrong answers.",
            "Choose random wrong answers, or those of BM25 or the model.",
        )
    return with_negatives(data)


def _binary(settings: TrainingSettings, data: TrainingData, with_negatives: AddNegatives) -> TrainingData:
    """Two texts and 1 (belong together) or 0. Of pairs and triplets each wrong answer makes a row with 0."""
    if data.kind == "labelled":
        positive, negative = binary_classes(data)
        assert data.labels is not None
        kept = np.flatnonzero((data.labels == positive) | (data.labels == negative))
        labels = read_only((data.labels[kept] == positive).astype(np.int64))
        dropped = {**data.dropped}
        if len(kept) < len(data):
            dropped["neither belongs nor does not belong"] = len(data) - len(kept)
        return replace(data.take(kept), labels=labels, label_names=BINARY_NAMES, dropped=dropped)
    if data.kind == "pairs" and settings.negatives != "none":
        data = with_negatives(data)
    anchors, positives = data.columns["anchor"], data.columns["positive"]
    wrong = _wrong_answers(data)
    negatives = tuple(text for side in wrong for text in side)
    first = anchors * (1 + len(wrong))
    labels = np.repeat(np.array([1, 0], np.int64), [len(positives), len(negatives)])
    columns = {"sentence1": first, "sentence2": positives + negatives}
    return replace(data, kind="labelled", columns=columns, labels=read_only(labels), label_names=BINARY_NAMES)


def _wrong_answers(data: TrainingData) -> list[tuple[str, ...]]:
    """The columns of wrong answers: none of pairs."""
    return [texts for name, texts in data.columns.items() if name.startswith(NEGATIVE)]


def _by_first_text(data: TrainingData) -> TrainingData:
    """Triplets of a first text with one second text that belongs to it and one that does not.

    Made of premises with both an entailed and a contradicting hypothesis, as in training on SNLI and MultiNLI.
    """
    positive, negative = binary_classes(data)
    partners: dict[str, tuple[list[str], list[str]]] = {}
    assert data.labels is not None
    for first, second, label in zip(*data.columns.values(), data.labels, strict=True):
        if label in (positive, negative):
            partners.setdefault(first, ([], []))[int(label == negative)].append(second)
    rows = [
        (first, right, wrong) for first, (rights, wrongs) in partners.items() for right in rights for wrong in wrongs
    ]
    anchors, positives, negatives = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"anchor": anchors, "positive": positives, "negative": negatives}
    return replace(data, kind="triplets", columns=columns, labels=None, label_names=())


def _as_pairs(data: TrainingData, kept: Int64, reason: str) -> TrainingData:
    """The kept rows of two texts as pairs; the others are counted."""
    columns = dict(zip(("anchor", "positive"), data.take(kept).columns.values(), strict=True))
    dropped = {**data.dropped, **({reason: len(data) - len(kept)} if len(kept) < len(data) else {})}
    return replace(data, kind="pairs", columns=columns, labels=None, label_names=(), dropped=dropped)


def binary_classes(data: TrainingData) -> tuple[int, int]:
    """The numbers of the classes that mean "belongs together" and "does not". Raises InputError where no class does.

    Of two classes 1 and 0, 1 means that they belong together. Among three, and for premises with hypotheses, numbers say
    nothing: in SNLI 0 is entailment.
    """
    plain = ["0" if name == "-1" else label_word(name) for name in data.label_names]
    if len(plain) > 2 or "premise" in map(str.casefold, data.read_from.values()):
        plain = [name if not name.isdigit() else "" for name in plain]
    positive = [number for number, name in enumerate(plain) if name in POSITIVE_LABELS]
    negative = [number for number, name in enumerate(plain) if name in NEGATIVE_LABELS]
    if len(positive) != 1 or len(negative) != 1:
        raise InputError(
            f"The labels of {data.name} are {', '.join(data.label_names)[:200]}.",
            "One must mean that two texts belong together (such as 1 or entailment), and one that they do not (such as 0 or "
            "contradiction).",
            "Rename the labels, or choose softmax classification, which takes any.",
        )
    return positive[0], negative[0]
