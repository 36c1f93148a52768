"""What Start shows before any model is loaded: the numbers of two pictures, which a file holds.

`python -m dashboard.views.home.stored` measures them with the included model and writes assets/start.json, and beside it what
the model's heads do on average, the whole path of a sentence, the numbers of the ready-made pairs, and what MaxSim changes over
the included collections. Tests measure them again. What is drawn of them is said by `findings`, from these numbers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from components.folders import ASSETS, whole_file

if TYPE_CHECKING:
    import numpy as np

    from components.model.backend import Backend

PATH = ASSETS / "start.json"
WORD = "bank"  # of the labelled sentences
# Of the included sentence pairs: one whose second sentence denies the first, and one that says the same in other words.
OPPOSITE = "The patient is allowed to leave the hospital."
PARAPHRASE = "The company sacked a fifth of its workers."
KINDS = ("negation", "paraphrase")  # of the included minimal pairs
DIGITS = 5  # kept of each number: pages round once, to fewer


@dataclass(frozen=True)
class Senses:
    """One word in sentences of two senses."""

    word: str
    labels: tuple[str, ...]  # [sentence]
    sentences: tuple[str, ...]
    maps: tuple[tuple[tuple[float, float], ...], ...]  # [layer, sentence], from layer 0 to `apart`
    accuracy: tuple[float, ...]  # [layer], how often the most similar other occurrence has the same sense

    @property
    def apart(self) -> int:
        """The layer at which the senses lie apart: the last one that is drawn."""
        return len(self.maps) - 1


@dataclass(frozen=True)
class ScoredPair:
    """Two sentences and their similarity."""

    first: str
    second: str
    cosine: float


@dataclass(frozen=True)
class Blindness:
    """What negation does to similarity, beside other words for the same."""

    opposite: ScoredPair
    paraphrase: ScoredPair
    negations: tuple[float, ...]  # the cosines of all pairs with a negation, in ascending order
    paraphrases: tuple[float, ...]


@dataclass(frozen=True)
class StoredNumbers:
    """All numbers of the file, and the model that gave them."""

    revision: str  # of the model: a checksum of its weights
    model: str
    blocks: int
    heads: int  # of a block
    parameters: int
    senses: Senses
    blindness: Blindness


@cache
def stored() -> StoredNumbers:
    """What the file holds."""
    read: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    senses, blindness = read["senses"], read["blindness"]
    return StoredNumbers(
        **{name: read[name] for name in ("revision", "model", "blocks", "heads", "parameters")},
        senses=Senses(
            senses["word"],
            tuple(senses["labels"]),
            tuple(senses["sentences"]),
            tuple(tuple((x, y) for x, y in layer) for layer in senses["maps"]),
            tuple(senses["accuracy"]),
        ),
        blindness=Blindness(
            ScoredPair(**blindness["opposite"]),
            ScoredPair(**blindness["paraphrase"]),
            tuple(blindness["negations"]),
            tuple(blindness["paraphrases"]),
        ),
    )


def measured(backend: Backend) -> StoredNumbers:
    """The same numbers, measured with a model."""
    facts = backend.facts
    return StoredNumbers(
        backend.revision,
        backend.spec.title,
        facts.layers,
        facts.heads,
        facts.parameters,
        _senses(backend),
        _blindness(backend),
    )


def _senses(backend: Backend) -> Senses:
    import numpy as np

    from components.analysis.first_look.turning import turned_maps
    from components.analysis.matched_words import word_vectors
    from components.analysis.tokens import position_at
    from components.analysis.word_senses import sense_curve
    from components.retrieval.corpora.senses import read_senses

    rows = read_senses(ASSETS / "senses.jsonl", "senses.jsonl").of(WORD)
    trace = backend.trace([row.sentence for row in rows])
    places = []
    for number, (row, sentence) in enumerate(zip(rows, trace.sentences, strict=True)):
        start = row.sentence.lower().index(WORD)
        position = position_at(sentence, start, start + len(WORD))
        assert position is not None, row
        places.append((number, sentence.word_positions(position)))
    vectors = word_vectors(trace, places)
    labels = [row.sense for row in rows]
    curve = sense_curve(vectors, labels)
    maps = np.round(turned_maps(vectors[: curve.best + 1]), 3).tolist()
    return Senses(
        WORD,
        tuple(labels),
        tuple(row.sentence for row in rows),
        tuple(tuple((x, y) for x, y in layer) for layer in maps),
        _rounded(curve.accuracy),
    )


def _blindness(backend: Backend) -> Blindness:
    from components.retrieval.corpora.minimal_pairs import read_minimal_pairs

    pairs = read_minimal_pairs(ASSETS / "minimal_pairs.jsonl", "minimal_pairs.jsonl", limits=None)
    lines = (ASSETS / "sts_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = {row["sentence1"]: row["sentence2"] for row in map(json.loads, lines)}
    shown = {first: (first, seconds[first]) for first in (OPPOSITE, PARAPHRASE)}
    strips = {
        kind: sorted(_cosines(backend, [(pairs.first[row], pairs.second[row]) for row in pairs.rows_of(kind).tolist()]))
        for kind in KINDS
    }
    opposite, paraphrase = _cosines(backend, list(shown.values()))
    return Blindness(
        ScoredPair(*shown[OPPOSITE], opposite),
        ScoredPair(*shown[PARAPHRASE], paraphrase),
        *(tuple(strips[kind]) for kind in KINDS),
    )


def _cosines(backend: Backend, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
    """The similarity of each pair by the model's own vectors after its last block."""
    from components.analysis.pooling import pool
    from components.arrays import cosine

    # By traces: vectors in bulk may be computed in bfloat16.
    traces = [backend.trace([pair[side] for pair in pairs]) for side in (0, 1)]
    first, second = (pool(trace, backend.own_pooling)[-1] for trace in traces)
    return _rounded(cosine(first, second))


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), DIGITS) for value in values)


def write() -> None:
    """Measure with the included model, and write the files."""
    import numpy as np

    from components.model.backend import Backend
    from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
    from dashboard.jobs.stored import cross_looks, pairs, second_looks
    from dashboard.jobs.stored.included_words import HABITS, WHOLE, measured_habits

    backend = Backend.load()
    from dashboard.views.home import whole

    habits = np.rint(measured_habits(backend).weights.astype(np.float64) * WHOLE).astype(int).tolist()
    texts = {
        PATH: json.dumps(asdict(measured(backend)), ensure_ascii=False, indent=1),
        HABITS: json.dumps(habits, separators=(",", ":")).replace("]],[[", "]],\n[["),
    }
    files = {path: f"{text}\n".encode() for path, text in texts.items()}
    files |= {whole.PATH: whole.measured(backend), pairs.PATH: pairs.measured(backend)}
    files[second_looks.PATH] = second_looks.measured(backend, second_looks.included())
    scorer = Backend.load(EMBEDDED_CROSS_ENCODER_KEY)
    files[cross_looks.PATH] = cross_looks.measured(backend, scorer, second_looks.included())
    for path, content in files.items():
        with whole_file(path) as file:
            file.write(content)


if __name__ == "__main__":
    write()
