"""What the tests of training share: a task that a tiny random BERT can learn in seconds, and one run that has learned it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CONCEPTS = 40  # each has one word in queries and another in answers


def concept_pairs(rows: int = 400, seed: int = 3) -> Any:
    """Pairs of a query of three words and an answer of three others, word by word a translation: no word is shared.

    Nothing but training can tell which answer belongs to a query.
    """
    from components.training.data import TrainingData

    random = np.random.default_rng(seed)
    chosen = {tuple(sorted(random.choice(CONCEPTS, 3, replace=False))) for _ in range(2 * rows)}
    triples = [random.permutation(triple) for triple in sorted(chosen)][:rows]
    return TrainingData(
        "pairs",
        "concepts",
        {
            "anchor": tuple(" ".join(f"ask{number}" for number in triple) for triple in triples),
            "positive": tuple(" ".join(f"say{number}" for number in reversed(triple)) for triple in triples),
        },
    )


@pytest.fixture(scope="session")
def concept_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of two blocks that knows the words of `concept_pairs`, one token each."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"{role}{number}" for role in ("ask", "say") for number in range(CONCEPTS)]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    folder = tmp_path_factory.mktemp("concept-model")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=32, **special).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """One thread, as in the training process on two cores: sums are then the same to the last bit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def new_run(concept_model: Path, tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Callable[..., Any]:
    """A new run on the concepts; `data` and any setting may be given."""
    from components.training import runs
    from components.training.data import split
    from components.training.settings import TrainingSettings

    def create(data: Any = None, **changes: Any) -> Any:
        options = {
            "model": str(concept_model),
            "batch_size": 32,
            "learning_rate": 6e-3,
            "adapter": False,
            "epochs": 4,
            "evaluate_every": 10,
            "watch_every": 15,
            "watch": ("ask1 ask2 ask3", "say1 say2", "say9"),
        }
        settings = TrainingSettings(**{**options, **changes})
        rows = concept_pairs() if data is None else data
        parts = split(rows, settings.held_out_share, settings.seed, settings.max_rows)
        return runs.create(settings, rows, parts, tmp_path_factory.mktemp("runs") / "run")

    return create


@pytest.fixture(scope="session")
def train_here(one_thread: None) -> Callable[..., Any]:
    """Runs `worker.main` in this process, without its low priority, and returns the run's state."""
    from components.training import worker

    def train(run: Any, checkpoint_seconds: float = 1e9) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "_give_way", lambda: None)
            worker.main([str(run.path), "--checkpoint-seconds", str(checkpoint_seconds)])
        return run.state()

    return train


@pytest.fixture(scope="session")
def learned(new_run: Callable[..., Any], train_here: Callable[..., Any]) -> Any:
    """A run that is done. Shared: do not change its files."""
    run = new_run()
    state = train_here(run)
    assert state.error == ""
    return run
