"""What is kept for everybody is kept for each model, text and option by itself: one person's result is nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.analysis.languages import known_letters
from components.analysis.similarity import baseline
from components.jobs import RETRY_SECONDS, Cache
from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.texts import Texts
from components.retrieval.search import query
from dashboard import caching
from dashboard.jobs import embedding, evaluation, interventions, rankers, requests, search_engines, splade
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.failures import CorpusQueries
from dashboard.jobs.reranking import SecondStage
from dashboard.jobs.second_stage import TwoStages
from dashboard.views.map import choices
from dashboard.views.search import chance


def backend(key: str = "a model of this file", revision: str = "1", device: str = "cpu") -> Any:
    """A model whose every answer is a new one."""

    def new(*_: Any, **__: Any) -> np.ndarray:
        return np.zeros((1, 1), np.float32)

    return SimpleNamespace(
        spec=SimpleNamespace(key=key, title=key),
        revision=revision,
        device=device,
        tokenization=None,
        pair_logits=new,
        next_sentence_probabilities=new,
        multi_vectors=lambda *_, **__: [new()],
    )


OTHERS = (backend("another model"), backend(revision="2"))


def each_change(base: dict[str, Any], changes: dict[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The arguments, and those with one of them changed."""
    return [base, *(base | {name: value} for name, values in changes.items() for value in values)]


def pair_logits() -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    base = {
        "backend": backend(),
        "queries": ("q",),
        "documents": ("d",),
        "max_length": None,
        "truncation": "longest_first",
    }
    changes = {
        "backend": OTHERS,
        "queries": (("d",),),
        "documents": (("q",),),
        "max_length": (8,),
        "truncation": ("only_second",),
    }
    return caching.pair_logits, each_change(base, changes)


def next_sentences() -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    base = {"backend": backend(), "texts": ("a",), "followers": ("b",)}
    return caching.next_sentence_probabilities, each_change(
        base, {"backend": OTHERS, "texts": (("b",),), "followers": (("a",),)}
    )


def token_vectors() -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    base = {"backend": backend(), "text": "a", "role": "query", "max_length": None}
    changes = {"backend": OTHERS, "text": ("b",), "role": ("document",), "max_length": (8,)}
    return caching.trained_token_vectors, each_change(base, changes)


OPTIONS = EmbedOptions((1,), ("mean",), 8, "float32")
INFO = SimpleNamespace(model="m", revision="1", options=OPTIONS)


def query_vectors() -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    def info(**options: Any) -> Any:
        return SimpleNamespace(**vars(INFO) | {"options": replace(OPTIONS, **options)})

    infos = (
        *(SimpleNamespace(**vars(INFO) | changed) for changed in ({"model": "n"}, {"revision": "2"})),
        *(info(**changed) for changed in ({"layers": (2,)}, {"poolings": ("cls",)}, {"max_length": 9})),
    )
    base = {"backend": backend(), "queries": ("q",), "info": INFO}
    return caching.query_vectors, each_change(base, {"queries": (("r",),), "info": infos})


@pytest.mark.parametrize("kept", [pair_logits, next_sentences, token_vectors, query_vectors])
def test_a_kept_result_is_that_of_these_arguments_alone(
    kept: Callable[[], tuple[Callable[..., Any], list[dict[str, Any]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "query_vectors", lambda *_: {(1, "mean"): np.zeros((1, 1), np.float32)})
    ask, cases = kept()
    found = [ask(**case) for case in cases]
    assert len({id(each) for each in found}) == len(cases)
    assert all(ask(**case) is each for case, each in zip(cases, found, strict=True))


def test_a_corpus_calibration_is_that_of_an_index_a_layer_and_a_pooling() -> None:
    def index(identity: str) -> Any:
        vectors = np.eye(4, dtype=np.float32)
        info = SimpleNamespace(sentences=4, identity=("an index of this file", identity))
        return SimpleNamespace(info=info, texts="abcd", engine=lambda *_: SimpleNamespace(vectors=vectors))

    cases = [(index("1"), 1, "mean"), (index("2"), 1, "mean"), (index("1"), 2, "mean"), (index("1"), 1, "cls")]
    found = [caching.corpus_calibration(*case) for case in cases]  # type: ignore[arg-type]
    assert len({id(each) for each in found}) == len(cases)
    assert caching.corpus_calibration(*cases[0]) is found[0]  # type: ignore[arg-type]


def test_random_queries_are_of_one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "query_vectors", lambda *_, **__: {})
    monkeypatch.setattr(caching, "_random_query_vectors", cache(lambda: Cache(4)))
    infos: list[Any] = [SimpleNamespace(identity=("an index of this file", number)) for number in range(2)]
    found = [caching.random_query_vectors(backend(), ("q",), info, lambda: False) for info in infos]
    assert found[0] is not found[1]
    assert caching.random_query_vectors(backend(), ("q",), infos[0], lambda: False) is found[0]


def test_kinds_of_what_people_chose_do_not_mix() -> None:
    parts = [part for part in vars(caching).values() if getattr(part, "func", None) is caching._of_kind]
    assert len(parts) > 15
    assert len({part.args for part in parts}) == len(parts)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of the jobs that are asked for; none is made."""
    found: list[Any] = []

    def asked(key: Any, *_: Any, **__: Any) -> Any:
        found.append(key)
        return SimpleNamespace(nbytes=0, postings=None, max_length=8)

    for name in ("prepared", "latest"):
        monkeypatch.setattr(requests, name, asked)
    monkeypatch.setattr(evaluation, "result", asked)
    return found


def distinct(keys: list[Any], expected: int) -> None:
    assert len(keys) == expected
    assert len(set(keys)) == expected


TEXTS, OTHER_TEXTS = Texts("one", ("a", "b")), Texts("one", ("a", "c"))


def test_counts_of_tokens_are_of_a_model_a_corpus_and_a_prompt(keys: list[Any]) -> None:
    for model in (backend(), *OTHERS):
        embedding.token_counts(model, TEXTS, "x")
    embedding.token_counts(backend(), OTHER_TEXTS, "x")
    embedding.token_counts(backend(), TEXTS, "x", "query: ")
    distinct(keys, 5)


def test_words_are_counted_for_each_kind_corpus_and_file(keys: list[Any]) -> None:
    for kind, texts, source in (
        ("bm25", TEXTS, ""),
        ("tfidf", TEXTS, ""),
        ("bm25", OTHER_TEXTS, ""),
        ("bm25", TEXTS, "vectors"),
    ):
        ranking: Any = SimpleNamespace(kind=kind, source=source, make=None)
        rankers.word_ranker(ranking, texts)
        answers: Any = SimpleNamespace(content_hash=texts.content_hash)
        evaluation.word_ranks(ranking, answers, texts.texts, 2)
    distinct(keys, 8)


def test_an_engine_is_of_an_index_a_layer_a_pooling_and_a_similarity(keys: list[Any]) -> None:
    def index(folder: str) -> Any:
        return SimpleNamespace(folder=folder, info=SimpleNamespace(sentences=2))

    base: tuple[Any, ...] = (index("1"), 1, "mean", "cosine", "usearch")
    search_engines.ready(*base)
    for place, value in enumerate((index("2"), 2, "cls", "dot", "milvus")):
        changed: Any = (*base[:place], value, *base[place + 1 :])
        search_engines.ready(*changed)
    distinct(keys, 6)


def test_splade_is_of_a_model_its_length_and_a_corpus(keys: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splade, "SpladeRanker", lambda *_: None)
    for request, texts in (
        (EmbedRequest(backend()), TEXTS),
        (EmbedRequest(OTHERS[0]), TEXTS),
        (EmbedRequest(OTHERS[1]), TEXTS),
        (EmbedRequest(backend(device="cuda")), TEXTS),
        (EmbedRequest(backend(), 8), TEXTS),
        (EmbedRequest(backend()), OTHER_TEXTS),
    ):
        splade.ranker(request, texts, "x")
    distinct(keys, 6)


def test_candidates_scores_are_of_both_stages() -> None:
    stage = SecondStage("rerank", backend(), None, 0)
    seconds = (
        stage,
        *(replace(stage, backend=model) for model in OTHERS),
        *(replace(stage, **{name: value}) for name, value in (("kind", "maxsim"), ("label", 1), ("layer", 2))),  # type: ignore[arg-type]
        replace(stage, max_length=8),
    )
    distinct([second.key for second in seconds], 7)
    first = TwoStages(backend(), 1, "mean", 10, stage)
    others = [replace(first, **{name: value}) for name, value in (("layer", 2), ("pooling", "cls"), ("k", 20))]  # type: ignore[arg-type]
    distinct([each.key for each in (first, *others, replace(first, second=seconds[1]))], 5)


def test_an_experiment_is_of_its_texts_and_of_what_is_put_in() -> None:
    base = interventions.Experiment(backend(), "a", "b", "c", "mean")
    changes: dict[str, Any] = {"a": "x", "b": "x", "c": "x", "pooling": None, "values": "zero"}
    others = [replace(base, **{name: value}) for name, value in changes.items()]
    drawn = [replace(base, values="resample", seed=seed) for seed in (0, 1)]
    distinct([each.key for each in (base, *others, *drawn, *(replace(base, backend=model) for model in OTHERS))], 10)
    assert replace(base, seed=5).key == base.key  # nothing is drawn
    assert replace(base, label=1).key == base.key  # the logits of all labels are kept


def test_ranks_and_scores_of_pairs_are_of_their_indexes_layer_and_pooling(
    keys: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def index(name: str) -> Any:
        engine = SimpleNamespace(vectors=np.eye(2))
        return SimpleNamespace(folder=SimpleNamespace(name=name), engine=lambda *_: engine)

    class Pairs(SimpleNamespace):
        def __len__(self) -> int:
            return 2

    def pairs(name: str) -> Any:
        return Pairs(content_hash=name, documents=TEXTS, queries=TEXTS, ranks_by_vectors=None)

    base: tuple[Any, ...] = (pairs("p"), index("d"), index("q"), 1, "mean")
    for place, value in enumerate((base[0], pairs("r"), index("e"), index("r"), 2, "cls")):
        case: Any = (*(base if place == 0 else (*base[: place - 1], value, *base[place:])), "a run", "x")
        evaluation.retrieved(*case)
    distinct(keys, 6)
    keys.clear()
    for documents, queries, content in (("d", "q", "p"), ("e", "q", "p"), ("d", "r", "p"), ("d", "q", "r")):
        both = index(documents), index(queries)
        monkeypatch.setattr(evaluation, "both_indexes", lambda *_, both=both: both)
        evaluation.pair_indexes(EmbedRequest(backend()), pairs(content), "x")
    distinct(keys, 4)


def test_chance_is_measured_for_each_ranking_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Any] = []
    monkeypatch.setattr(chance, "_measured", lambda key, *_: keys.append(key))
    request: Any = SimpleNamespace(backend=backend(), corpus=TEXTS)
    index: Any = SimpleNamespace(info=SimpleNamespace(identity="1"))
    other: Any = SimpleNamespace(info=SimpleNamespace(identity="2"))
    base: tuple[Any, ...] = (index, 1, "mean", "cosine")
    for case in (base, (other, *base[1:]), (index, 2, *base[2:]), (index, 1, "cls", "cosine"), (*base[:3], "dot")):
        chance.of_vectors(request, *case)
    ranker: Any = SimpleNamespace(title="LSA", max_length=8)
    for texts, source in ((TEXTS, ""), (OTHER_TEXTS, ""), (TEXTS, "vectors")):
        chance.of_words(texts, ranker, source)  # type: ignore[arg-type]
    chance.of_words(TEXTS, SimpleNamespace(title="Static"), "")  # type: ignore[arg-type]
    for model in (backend(), *OTHERS):
        chance.of_splade(TEXTS, SimpleNamespace(title="SPLADE", max_length=8, backend=model))  # type: ignore[arg-type]
    distinct(keys, 12)


def test_tokens_of_a_map_are_of_a_model_a_corpus_a_word_and_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    jobs = SimpleNamespace(request=lambda key, *_, **__: found.append(key))
    monkeypatch.setattr(caching, "token_jobs", lambda: jobs)
    for model, corpus, word, most in (
        *((model, "c", "", 500) for model in (backend(), *OTHERS)),
        *((backend(), *other) for other in (("d", "", 500), ("c", "bank", 500), ("c", "", 2_000))),
    ):
        choices.request_tokens(model, corpus, ("text",), "a corpus", word, most)
    distinct(found, 6)


def test_failed_queries_are_of_both_indexes_a_layer_a_pooling_and_the_texts_searched() -> None:
    def index(name: str) -> Any:
        return SimpleNamespace(folder=SimpleNamespace(name=name))

    searched: tuple[Any, ...] = tuple(SimpleNamespace(every_text=every) for every in (True, False))
    base = CorpusQueries(EmbedRequest(backend()), searched[0], index("d"), index("q"), 1, "mean")
    changes: dict[str, Any] = {"corpus": searched[1], "index": index("e"), "layer": 2, "pooling": "cls"}
    others = [replace(base, **{name: value}) for name, value in changes.items()]
    distinct([each.key for each in (base, *others, *(replace(base, queries=of) for of in (None, index("r"))))], 7)


def test_known_letters_are_of_a_model_and_a_text_or_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted(*_: Any) -> int:
        counts.append(0)
        return len(counts)

    monkeypatch.setattr(known_letters, "of_corpus", counted)
    monkeypatch.setattr(known_letters, "has_long_pieces", lambda _: True)
    first, second = backend("letters of this file"), backend("letters of this file", "2")
    for model in (first, second):
        model.tokenization = SimpleNamespace(vocabulary=())

    def ask() -> list[object]:
        return [
            *(caching.known_letters(*case) for case in ((first, "a"), (second, "a"), (first, "b"))),
            *(caching.known_letters_of_corpus(first, name, ("a",)) for name in ("one", "two")),
        ]

    assert ask() == ask() == [1, 2, 3, 4, 5]


def test_a_baseline_that_could_not_be_measured_is_measured_again_but_not_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, problems = [1_000.0], [RuntimeError("out of memory"), None]
    tries: list[RuntimeError | None] = []
    model = backend("a baseline of this file")
    model.structure, model.run = SimpleNamespace(why_not=lambda _: ""), None
    model.facts, model.poolings = SimpleNamespace(layers=2), ("mean",)

    def measured(*_: Any) -> Any:
        problem = problems[len(tries)]
        tries.append(problem)
        if problem is not None:
            raise problem
        return "measured"

    monkeypatch.setattr(baseline, "measure_sample", measured)
    monkeypatch.setattr(caching, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(caching, "_baselines", cache(lambda: Cache(8)))  # those of other tests' models stay
    assert caching.baseline(model).tokens.has_failed
    assert not caching.baseline_ready(model)
    now[0] += RETRY_SECONDS - 1
    assert caching.baseline(model).tokens.has_failed
    assert len(tries) == 1
    now[0] += 1
    for _ in range(2):
        assert caching.baseline(model) == "measured"
    assert len(tries) == 2
    assert caching.baseline_ready(model)
    assert caching.baseline_under_way([model])
    assert not caching.baseline_under_way([model, backend("a model that nobody measures")])


def test_a_tab_is_known_by_the_first_mark_that_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[tuple[str, str, str]] = []
    for name in ("lesson_answers", "blind_votes"):
        kept = SimpleNamespace(move=lambda before, after, name=name: moved.append((name, before, after)))
        monkeypatch.setattr(caching, name, lambda kept=kept: kept)
    monkeypatch.setattr("streamlit.session_state", {})
    monkeypatch.setattr(caching, "person", lambda: "session")
    first, second = "01234567-89ab-4def-8123-456789abcdef", "11234567-89ab-4def-8123-456789abcdef"
    for wrong in (None, 7, "", first.upper(), first[:-1], f"{first} "):
        assert not caching.know_visitor(wrong)
    assert (caching.visitor(), caching.is_visitor_known(), moved) == ("session", False, [])
    assert caching.know_visitor(first)
    assert not caching.know_visitor(second)
    assert (caching.visitor(), caching.is_visitor_known()) == (first, True)
    assert moved == [("lesson_answers", "session", first), ("blind_votes", "session", first)]
