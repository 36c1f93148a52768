"""Code for training runs: their curves, and the sentences that a run embeds on the way, read from the run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.training.settings import TrainingSettings

Curves = Literal["losses", "measures", "learning_rate", "sentences_per_second"]


def _setup(run: str) -> tuple[str, ...]:
    return (code.remark("The run must be among those of this machine."), f"run = find({code.literal(run)})")


def curves(run: str, shown: Curves) -> Snippet:
    """The curves of a run: steps with values."""
    validation = ", history.validation" if shown == "losses" else ""
    return Snippet(
        _setup(run),
        (
            "history = HistoryReader(run).read()",
            f"values = history.{shown}",
            f"print(values{validation})  # steps and values",
        ),
    )


def learning_rate(settings: TrainingSettings, steps: int) -> Snippet:
    """The learning rate of each step of a plan."""
    chosen = {
        "learning_rate": settings.learning_rate,
        "schedule": settings.schedule,
        "warmup_share": settings.warmup_share,
        "warmup_steps": settings.warmup_steps,
    }
    named = ", ".join(f"{name}={code.literal(value)}" for name, value in chosen.items())
    return Snippet(
        (),
        (
            f"settings = TrainingSettings({named})",
            f"values = learning_rates(settings, steps={steps})",
            "print(values)  # [step], and after the last one",
        ),
    )


def file_rows(
    name: str,
    chosen: Mapping[str, str] | None,
    part: str | None = None,
    dialect: DialectChoice = AS_FOUND,
    encoding: str = "utf-8",
) -> tuple[str, ...]:
    """The statements that give `rows`, those of a person's file; its columns by ours, and its part, if they were chosen."""
    written = None if encoding == "utf-8" else encoding
    rows = code.call("load", "file", *code.dialect_argument(dialect), **_choices(chosen, part), encoding=written)
    return (*code.file(name, "The rows were those of"), f"rows = {rows}")


def _choices(chosen: Mapping[str, str] | None, part: str | None) -> dict[str, object]:
    return {**({} if chosen is None else {"chosen": dict(chosen)}), **({} if part is None else {"part": part})}


def included_rows(source: str) -> tuple[str, ...]:
    """The statements that give `rows`, those that come with the dashboard."""
    return (f"rows = {code.call('load', code.literal(source))}",)


def corpus_rows(
    of: Sequence[str], text_column: str, chosen: Mapping[str, str] | None, part: str | None = None
) -> tuple[str, ...]:
    """The statements that give `rows`, those of a corpus that the statements `of` read."""
    columns = _choices(chosen, part)
    table = f"{{{code.literal(text_column)}: corpus.texts, **corpus.columns}}"
    return (*of, f"rows = {code.call('from_columns', table, 'corpus.name', **columns)}")


def lengths(backend: Backend, of: Sequence[str], *, together: bool) -> Snippet:
    """The number of tokens of each text of some rows, or with `together` of both texts that a cross-encoder reads."""
    counted = "token_lengths(rows, backend.tokenization)"
    if together:
        counted = f"joint_lengths({counted}, backend.tokenization)"
    return Snippet((code.model(backend), *of), (f"values = {counted}", "print(values)  # column to [row]"))


@dataclass(frozen=True)
class BeforeAfter:
    """A run's model before and after training, measured on the same texts; also the untouched one, if there is a third."""

    run: str
    base: Backend
    tuned: Backend
    max_length: int | None
    source: Literal["news", "scored", "held-out"]
    untouched: Backend | None = None

    @property
    def _setup(self) -> tuple[str, ...]:
        third = () if self.untouched is None else (code.model(self.untouched, "untouched"),)
        return code.model(self.base), code.model(self.tuned, "tuned"), *third

    @property
    def _models(self) -> str:
        return "(backend, tuned)" if self.untouched is None else "(backend, tuned, untouched)"

    @property
    def _sides(self) -> str:
        return "before, after" if self.untouched is None else "before, after, whole"

    def _printed(self, how: str) -> str:
        named = "before and after" if self.untouched is None else "before, after and untouched"
        return f"print(values)  # {named}, {how}"

    def _held_out(self) -> tuple[str, ...]:
        return (
            *_setup(self.run),
            "rows, split = run.data()",
            "held_out = rows.take(split.held_out)",
        )

    def _embed(self) -> str:
        options = code.call(
            "model.embed_options",
            "[model.facts.layers], [model.own_pooling]",
            max_length=self.max_length,
            precision="float32",
        )
        options = f"{options[:-1]}, role=role)"
        return f"def embed(model, texts, role):\n    return model.embed(texts, options={options})[0, 0]"

    def retrieval(self) -> Snippet:
        """Retrieval measures before and after, with their intervals."""
        if self.source == "news":
            pairs: tuple[str, ...] = ("pairs = pairs_of_corpus(demo_corpus())",)
        else:
            columns = 'held_out.columns["positive"], held_out.columns["anchor"]'
            pairs = (*self._held_out(), f"pairs = pairs_of_rows(held_out.name, {columns})")
        return Snippet(
            self._setup,
            (
                *pairs,
                "queries, documents = pairs.queries.texts, pairs.documents.texts",
                self._embed(),
                f"{self._sides} = (\n"
                '    first_ranks(pairs.ranks_by_vectors(embed(model, queries, "query"), embed(model, documents, "document")))\n'
                f"    for model in {self._models}\n"
                ")",
                *(
                    (
                        "values = {change.name: (change.base, change.tuned) for change in retrieval_changes(before, after)}",
                    )
                    if self.untouched is None
                    else (
                        "beside = zip(retrieval_changes(before, after), retrieval_changes(whole, after))",
                        "values = {change.name: (change.base, change.tuned, third.base) for change, third in beside}",
                    )
                ),
                self._printed("as shares, each with its 95 % interval"),
            ),
        )

    def agreement(self) -> Snippet:
        """The correlation with scores before and after, with its intervals."""
        if self.source == "scored":
            texts: tuple[str, ...] = (
                'scored = scored_pairs(read_corpus(ASSETS / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1"))',
                "first, second, scores = scored.first, scored.second, scored.scores",
            )
        else:
            texts = (
                *self._held_out(),
                'first, second = held_out.columns["sentence1"], held_out.columns["sentence2"]',
                "scores = [float(score) for score in held_out.labels]",
            )
        return Snippet(
            self._setup,
            (
                *texts,
                self._embed(),
                f"{self._sides} = (\n"
                '    cosine(embed(model, first, "document"), embed(model, second, "document"))\n'
                f"    for model in {self._models}\n"
                ")",
                "change = spearman_change(before, after, scores)",
                'values = {"Spearman": (change.base, change.tuned)}',
                *(
                    ()
                    if self.untouched is None
                    else ('values["Spearman"] = (*values["Spearman"], spearman_change(whole, after, scores).base)',)
                ),
                self._printed("each with its 95 % interval"),
            ),
        )

    def failures(self) -> Snippet:
        """How often the same meaning is nearer than each kind of difference, with intervals."""
        return Snippet(
            self._setup,
            (
                'pairs = read_minimal_pairs(ASSETS / "minimal_pairs.jsonl", "minimal_pairs.jsonl")',
                self._embed(),
                "def shares(model):\n"
                '    first, second = embed(model, pairs.first, "document"), embed(model, pairs.second, "document")\n'
                "    cosines = cosine(first, second)[None]  # [1, pair]\n"
                '    same = cosines[:, pairs.rows_of("paraphrase")]\n'
                "    return {kind: separations(same, cosines[:, pairs.rows_of(kind)])[0] for kind in pairs.changed_kinds}",
                f"values = [shares(model) for model in {self._models}]",
                self._printed("by kind, as shares with their 95 % intervals"),
            ),
        )


def measured_grid() -> Snippet:
    """What `train --grid` measured for the included model and data."""
    return Snippet(
        (),
        (
            'measured = json.loads((ASSETS / "training" / "ablation.json").read_text(encoding="utf-8"))',
            'values = [100 * row["spearman"] for row in measured["grid"]]',
            'print([(row["pooling"], row["combination"]) for row in measured["grid"]], values)',
        ),
    )


def watched_sentences(run: str, step: int, layer: int) -> Snippet:
    """The cosines of a run's watch sentences at a step and layer."""
    return Snippet(
        _setup(run),
        (
            f"watched = run.watch(step={step})",
            f"values = sentence_similarity(watched.sentences[{layer}]).matrix",
            "print(values)  # [sentence, sentence]",
        ),
    )


def watched_word(run: str, step: int, word: str, groups: Sequence[str] | None) -> Snippet:
    """The cosines of a word in a run's watch sentences over the layers, at a step."""
    named = "None" if groups is None else code.literal(list(groups))
    return Snippet(
        _setup(run),
        (
            f"watched = run.watch(step={step})",
            f"curves = word_curves(watched.tokens, run.watch_tokens(), {code.literal(word)}, groups={named})",
            "values = curves.values",
            "print(curves.names, values)  # [curve, layer]",
        ),
    )


def watched_map(run: str, start: int, step: int | None) -> Snippet:
    """The map of the tokens of a run's watch sentences at its start; with a `step` the map there, aligned to it."""
    of_start = f"layer_map(run.watch(step={start}).tokens[-1], options, None)"
    points = (
        (f"values = {of_start}",)
        if step is None
        else (f"start = {of_start}", f"values = layer_map(run.watch(step={step}).tokens[-1], options, start)")
    )
    return Snippet(_setup(run), ('options = MapOptions("pca")', *points, "print(values)  # [token, axis]"))


def recorded_measures(run: str) -> Snippet:
    """The measures that a run took of itself before and after training."""
    return Snippet(
        _setup(run),
        (
            "record = run.record()",
            'before, after, undamaged = record["before"], record["after"], record.get("undamaged")',
            "print(before, after, undamaged)  # None for undamaged where nothing was damaged",
        ),
    )


def layer_change(run: str, first: int, last: int) -> Snippet:
    """How much each layer changed between two steps of a run, over the tokens of its watch sentences."""
    return Snippet(
        _setup(run),
        (
            f"change = layer_change(run.watch(step={first}).tokens, run.watch(step={last}).tokens)",
            "print(1 - change.cka, 1 - change.cosine)  # [layer] each; 0: nothing changed",
        ),
    )


def head_change(base: Backend, tuned: Backend, sentences: Sequence[str]) -> Snippet:
    """The share of its attention that each head moved to other tokens."""
    return Snippet(
        (code.model(base), code.model(tuned, "tuned"), code.texts(sentences)),
        (
            "before, after = (model.trace(texts, attentions=True) for model in (backend, tuned))",
            "tokens = before.attention_mask.astype(bool)",
            "change = head_change(before.attentions, after.attentions, tokens)",
            "values = 100 * change.share",
            "print(values)  # per cent, [block, head]",
        ),
    )
