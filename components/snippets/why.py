"""Code for what makes two texts similar: splits of their cosine, what it means, deletion curves, known failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from components.snippets import code
from components.snippets.code import Input, Snippet
from components.snippets.layers import pooled, unrelated_sentences

if TYPE_CHECKING:
    from components.analysis.why.patching import MapKind
    from components.model.backend import Backend
    from components.model.contributions.path_products import Reference
    from components.model.trace import Pooling
    from components.snippets.search import Embedded

Shown = Literal["matrix", "words"]


@dataclass(frozen=True)
class Split:
    """Which cosine is split: two sentences of an input, by their rows, at a layer and pooling."""

    read: Input
    rows: tuple[int, int]
    layer: int
    pooling: Pooling
    most: int  # words of a text that have a row of their own in the figures

    @property
    def _place(self) -> str:
        return f"{self.layer}, {code.literal(self.pooling)}"

    @property
    def _sentences(self) -> str:
        return f"trace.sentences[{self.rows[0]}], trace.sentences[{self.rows[1]}]"

    def _printed(self, shown: Shown, by_word: bool) -> tuple[str, ...]:
        if shown == "words":
            return (
                f"of_a, of_b = words.bounded({self.most}).part_scores()",
                "print([part.text for part in (*words.first, *words.second)], of_a, of_b)  # the sum of each word",
            )
        of = "words" if by_word else "ledger"
        return (
            f"values = {of}.bounded({self.most}).contributions",
            "print(values, ledger.left_over)  # [part of A, part of B]; with what is left over they sum to the cosine",
        )

    def by_tokens(self, shown: Shown, by_word: bool) -> Snippet:
        """Pairs of tokens at the layer, or of words, or the sum of each word."""
        return self.read.snippet(
            self.read.trace(),
            f"ledger = token_ledger(trace, {self._place}, {self.rows[0]}, {self.rows[1]})",
            f"words = ledger.by_word({self._sentences})",
            *self._printed(shown, by_word),
        )

    def by_words_as_typed(self, shown: Shown, by_word: bool, reference: Reference, steps: int) -> Snippet:
        """The same down to the input, through the whole model."""
        sentences = f"sentences[{self.rows[0]}], sentences[{self.rows[1]}]"
        return self.read.snippet(
            self.read.tokens(),
            f"result = split_to_words(backend, {sentences}, {self._place}, {code.literal(reference)}, steps={steps})",
            "ledger = result.ledger.without_special()",
            f"words = result.ledger.by_word({sentences}).without_special()",
            *self._printed(shown, by_word),
        )

    def by_blocks(self) -> Snippet:
        """What each block and head adds."""
        split = code.call(
            "split_of_trace",
            f"backend, trace, {self._place}, {self.rows[0]}, {self.rows[1]}",
            max_length=self.read.max_length,
        )
        return self.read.snippet(
            self.read.trace(),
            f"split = {split}",
            "values = split.matrix",
            "print(split.columns(), values)  # [block, part]",
            "print(split.by_block())  # the embeddings, then each block",
        )

    def among_unrelated(self) -> Snippet:
        """The cosine, and those of unrelated sentences."""
        return self.read.snippet(
            self.read.trace(),
            f"score = cosine(*{pooled(self.pooling, True)}[{self.layer}, {code.literal(list(self.rows))}])",
            f"unrelated = {unrelated_sentences(self.pooling, True)}.calibration({self.layer})",
            "print(score, unrelated.standing(score))  # the share of unrelated pairs that are less similar",
            "values = unrelated.cosines",
            "print(values)  # [pair]",
        )

    def among_corpus(self, of: Embedded, most: int) -> Snippet:
        """The cosine, and those of pairs of a sample of a corpus."""
        return Snippet(
            (*self.read.setup, *of.corpus),
            (
                self.read.trace(),
                f"score = cosine(*{pooled(self.pooling, True)}[{self.layer}, {code.literal(list(self.rows))}])",
                *of.settings()[:2],
                f"rows = sample_of_rows(len(corpus), {most})",
                "vectors = backend.embed(corpus.texts, options=documents)[0, 0]",
                "others = of_vectors(vectors[rows], [corpus.texts[row] for row in rows])",
                "print(score, others.standing(score))  # the share of other pairs that are less similar",
                "values = others.cosines",
                "print(values)  # [pair]",
            ),
        )

    def at_each_layer(self, poolings: Sequence[Pooling], constant: Sequence[Pooling]) -> Snippet:
        """The percentile at each layer and pooling; those of `constant` have one vector for all texts at layer 0."""
        body = [
            self.read.trace(),
            "unrelated = measure_sample(backend.run, demo_sentences()).sentences",
            f"poolings, values = {code.literal(list(poolings))}, []",
            "\n".join(
                (
                    "for layer in range(trace.n_layers + 1):",
                    f"    pairs = {{name: pool(trace, name)[layer, {code.literal(list(self.rows))}] for name in poolings}}",
                    "    scores = {name: cosine(*pair) for name, pair in pairs.items()}",
                    "    shares = [unrelated[name, True].calibration(layer).shares(scores[name]) for name in poolings]",
                    "    values.append([100 * float(share) for share in shares])",
                )
            ),
        ]
        if constant:
            columns = [list(poolings).index(name) for name in constant]
            body += [
                "# At layer 0 [CLS] has one vector for all texts: nothing can be compared there.",
                f"for column in {code.literal(columns)}:\n    values[0][column] = np.nan",
            ]
        return self.read.snippet(*body, "print(values)  # per cent, [layer, pooling]")


@dataclass(frozen=True)
class Deletion:
    """How methods that name important words fare when the words are removed."""

    backend: Backend
    first: str
    second: str
    layer: int
    pooling: Pooling
    max_length: int
    from_both: bool

    def _body(self) -> tuple[str, ...]:
        place = f"layer={self.layer}, pooling={code.literal(self.pooling)}, max_length={self.max_length}"
        return (
            f"similarity = PairSimilarity.of(backend, *texts, {place})",
            f"found = compare_methods(similarity, from_both={self.from_both})",
        )

    @property
    def _setup(self) -> tuple[str, ...]:
        return code.model(self.backend), code.texts([self.first, self.second])

    def curves(self, order: Literal["first", "last"]) -> Snippet:
        """The cosine while words are removed, the most or the least important first."""
        return Snippet(
            self._setup,
            (
                *self._body(),
                f"values = {{method: curve.cosines for method, curve in found.{order}.items()}}",
                f"print(found.{order}['random'].shares, values)  # share of words removed; cosines by method",
            ),
        )

    def left_out(self) -> Snippet:
        """How far the cosine falls without each word."""
        return Snippet(
            self._setup,
            (
                *self._body(),
                "values = found.scores['left_out']  # [word], the words of both texts",
                "print([word.text for word in found.pair.words], values)",
            ),
        )

    def scores(self) -> Snippet:
        """The score of each word by each method, each method's divided by its largest."""
        return Snippet(
            self._setup,
            (
                *self._body(),
                "values = {method: found.scaled(method) for method in found.scores}",
                "print([word.text for word in found.pair.words], values)  # [word] for each method",
            ),
        )


@dataclass(frozen=True)
class Minimal:
    """Minimal pairs beside paraphrases; `name` is that of a person's file, None for the included ones."""

    backend: Backend
    name: str | None
    max_length: int | None

    @property
    def _setup(self) -> tuple[str, ...]:
        included = 'read_minimal_pairs(ASSETS / "minimal_pairs.jsonl", "minimal_pairs.jsonl")'
        if self.name is None:
            return code.model(self.backend), f"pairs = {included}"
        return (
            code.model(self.backend),
            *code.file(self.name, "The pairs were those of"),
            f"pairs = read_minimal_pairs(file, file.name).with_paraphrases_of({included})",
        )

    def _options(self, layers: Sequence[int], pooling: Pooling) -> str:
        chosen = f"{code.literal(list(layers))}, [{code.literal(pooling)}]"
        return "options = " + code.call(
            "backend.embed_options", chosen, max_length=self.max_length, precision="float32"
        )

    def _cosines(self, layers: Sequence[int], pooling: Pooling) -> tuple[str, ...]:
        return (
            self._options(layers, pooling),
            "def embed(texts, progress, is_cancelled):\n    return backend.embed(texts, options=options)",
            "",
            "found = pair_cosines(embed, pairs.first, pairs.second)",
        )

    def cosines(self, layer: int, pooling: Pooling) -> Snippet:
        """The cosines of all pairs, and of unrelated sentences."""
        return Snippet(
            self._setup,
            (
                *self._cosines([layer], pooling),
                "values, unrelated = found.of_pairs[0, 0], found.unrelated[0, 0]",
                "print({kind: values[pairs.rows_of(kind)] for kind in sorted(set(pairs.kinds))})",
                "print(unrelated)  # of each first sentence with the second one of another pair",
            ),
        )

    def by_layer(self, layers: Sequence[int], pooling: Pooling) -> Snippet:
        """How often a paraphrase is more similar than a changed pair, by kind and layer."""
        return Snippet(
            self._setup,
            (
                *self._cosines(layers, pooling),
                "cosines = found.of_pairs[:, 0]  # [layer, pair]",
                'paraphrases = cosines[:, pairs.rows_of("paraphrase")]',
                "values = {kind: 100 * shares_above(paraphrases, cosines[:, pairs.rows_of(kind)]) "
                "for kind in pairs.changed_kinds}",
                "print(values)  # per cent, [layer] for each kind",
            ),
        )

    def probe(self, kind: str, layers: Sequence[int], pooling: Pooling, most: int) -> Snippet:
        """What a linear probe can read of a difference, and its control task, at each layer."""
        return Snippet(
            self._setup,
            (
                f"rows = pairs.rows_of({code.literal(kind)})",
                f"rows = rows[sample_of_rows(len(rows), {most})]",
                "first, second = ([texts[row] for row in rows] for texts in (pairs.first, pairs.second))",
                self._options(layers, pooling),
                "vectors = backend.embed([*first, *second], options=options)[:, 0]",
                "both = vectors.reshape(len(vectors), 2, len(rows), -1)  # [layer, side, pair, dim]",
                "forms = [changed_forms(*pair) for pair in zip(first, second)]",
                "result = probe_layers(both, forms)",
                "print(result.accuracy, result.control_accuracy)  # [layer] each",
            ),
        )


def query_words(read: Input, layer: int, pooling: Pooling) -> Snippet:
    """What each word of a query adds to its cosines with the right text and with the rival; `read` are all three."""
    return read.snippet(
        read.trace(),
        "query, right, rival = trace.sentences",
        f"with_right = token_ledger(trace, {layer}, {code.literal(pooling)}, 0, 1).by_typed_word(query, right)",
        f"with_rival = token_ledger(trace, {layer}, {code.literal(pooling)}, 0, 2).by_typed_word(query, rival)",
        "by_right, by_rival = with_right.part_scores()[0], with_rival.part_scores()[0]",
        "print([part.text for part in with_right.first], by_right, by_rival)  # [query word] each",
        "print(with_right.contributions, with_rival.contributions)  # [query word, word of the text] each",
    )


def hubness(of: Embedded, column: str | None, most: int) -> Snippet:
    """In how many queries' first hits each text of a corpus stands; without a `column` of queries its texts are queries."""
    own = ", own_rows=rows" if column is None else ""
    queries = "search.vectors" if column is None else "backend.embed(searched.queries.texts, options=asked)[0, 0]"
    return Snippet(
        of.setup,
        (
            *of.settings()[: 2 if column is None else 3],
            f"searched = searched_corpus(corpus, {code.literal(column)})",
            "search = ExactSearch(backend.embed(searched.documents.texts, options=documents)[0, 0])",
            f"queries = {queries}",
            f"rows = sample_of_rows(len(queries), {most})",
            f"found = k_occurrence(queries[rows], search{own})",
            "values = found.counts",
            "print(values, found.skewness)  # [text]",
        ),
    )


def failures(of: Embedded, column: str, order: str) -> Snippet:
    """The failed queries of a corpus, with the rank of the right text and the lead of its rival."""
    return Snippet(
        of.setup,
        (
            *_failures(of, column),
            f"values = [(item.rank, item.lead, item.row, item.rival) for item in found.in_order({code.literal(order)})]",
            "for rank, lead, row, rival in values:\n"
            "    print(rank, lead, searched.queries.texts[searched.number_of[row]], searched.documents.texts[rival])",
        ),
    )


def failure_causes(of: Embedded, column: str, most: int) -> Snippet:
    """The traits of the failed queries of a corpus, and how often their rules hold for queries that do not fail."""
    return Snippet(
        of.setup,
        (
            *_failures(of, column),
            f"hubs = k_occurrence(queries[sample_of_rows(len(queries), {most})], search)",
            "too_long = [\n"
            "    [length > of.max_length for length in backend.tokenization.lengths([of.prompt + text for text in texts])]\n"
            "    for of, texts in ((asked, searched.queries.texts), (documents, searched.documents.texts))\n"
            "]",
            "failed, others = [\n"
            "    causes_of(placings, searched, search, hubs, tuple(too_long))\n"
            "    for placings in (found.placings, found.successes)\n"
            "]",
            "values = {name: (int(failed.of(name).sum()), 100 * others.of(name).mean()) for name in failed.names}",
            "print(values)  # failed queries with the trait; per cent of the others for which its rule holds",
        ),
    )


def _failures(of: Embedded, column: str) -> tuple[str, ...]:
    return (
        *of.settings(),
        f"searched = searched_corpus(corpus, {code.literal(column)})",
        "search = ExactSearch(backend.embed(searched.documents.texts, options=documents)[0, 0])",
        "queries = backend.embed(searched.queries.texts, options=asked)[0, 0]",
        "found = find_failures(searched, queries, search)",
    )


def experiments(read: Input, kind: MapKind, pooling: Pooling, *, from_a: bool, as_shares: bool) -> Snippet:
    """The effect of each activation of B on its cosine with C, if A's (or else zeros) are put into its place.

    `read` are the texts A, B and C.
    """
    source = (
        "FromSentence(backend.activations(a), {second: first for first, second in align_tokens(a, b).pairs})"
        if from_a
        else "Zeros(backend.activations(b))"
    )
    vectors = f"backend.patched_vectors(sentence, [[]], {code.literal(pooling)})[0] for sentence in sentences"
    return read.snippet(
        read.tokens(),
        "a, b, c = sentences",
        f"source = {source}",
        f"patches = [patch for row in map_of({code.literal(kind)}, backend.facts, len(b)) for patch in row]",
        'patches = [patch for patch in patches if patch.site != "layer" or patch.index in source.positions]',
        f"of_a, of_b, of_c = [{vectors}]",
        f"patched = measured(backend, b, source, [[patch] for patch in patches], {code.literal(pooling)})",
        "found = cosine_outcomes(of_a, of_b, patched, of_c)",
        f"values = found.{'shares' if as_shares else 'changes'}",
        "print([patch.code for patch in patches], values)",
    )


def _diagnosed(
    backend: Backend, corpus: Sequence[str], column: str, cell: tuple[int, str], max_length: int | None
) -> tuple[str, ...]:
    """The statements that give `pairs`, and `now`, how its queries are ranked."""

    def options(role: str) -> str:
        chosen = f"[{cell[0]}], {code.literal([cell[1]])}"
        return code.call("backend.embed_options", chosen, max_length=max_length, precision="float32", role=role)

    return (
        code.model(backend),
        *corpus,
        f"pairs = pairs_of_corpus(corpus, {code.literal(column)}, every_text=True)",
        f"asked = {options('query')}",
        f"stored = {options('document')}",
        'now = present(backend, pairs, asked, stored, every_cell=True, similarity="cosine")',
        "words = CorpusWords(pairs.documents.texts, backend.tokenization.vocabulary)",
    )


def trait_shares(
    backend: Backend, corpus: Sequence[str], column: str, cell: tuple[int, str], max_length: int | None
) -> Snippet:
    """The shares of the traits among failed and found queries."""
    return Snippet(
        _diagnosed(backend, corpus, column, cell, max_length),
        (
            "prompts = asked.prompt, stored.prompt",
            "found = traits_of(pairs, now.query_vectors, now.document_vectors, backend.tokenization, stored.max_length, "
            "prompts, words)",
            "values = compared(found, now.now > 1)",
            "for share in values:\n    print(share.name, share.share_of_failed, share.share_of_found, share.is_named)",
        ),
    )


def remedies(
    backend: Backend,
    corpus: Sequence[str],
    column: str,
    cell: tuple[int, str],
    max_length: int | None,
    names: Sequence[str],
    seed: int,
) -> Snippet:
    """What some remedies repair and harm."""
    return Snippet(
        (
            *_diagnosed(backend, corpus, column, cell, max_length),
            f"setting = Setting(now, halves(pairs.queries.texts, {seed}), words)",
        ),
        (
            f"values = list(rows_of({code.literal(list(names))}, setting, {seed}))",
            "for row in values:\n"
            "    print(row.title, row.result.repaired, row.result.harmed, row.result.recall, row.result.change)",
        ),
    )
