"""Code for what a masked-LM head guesses: in plain transformers, where it can load the model.

A model that is included in this project, or trained in it, is loaded by it alone: then the code calls `Backend`. So does the
code of a pass that looks only left, for architectures whose encoder takes no mask for each token as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.model.files.encoder.settings import EncoderSettings, read_encoder_settings
from components.model.guesses.masks import with_masks
from components.snippets import code
from components.snippets.code import Input, Snippet

if TYPE_CHECKING:
    from components.model.trace import TokenizedSentence

SCORES = 'with torch.inference_mode():\n    scores = model(**{**inputs, "input_ids": ids}).logits'
LENS = """\
with torch.inference_mode():
    encoder, layers = model.base_model, []
    for states in encoder(**{**inputs, "input_ids": ids}, output_hidden_states=True).hidden_states:
        # The head alone reads this layer: its vectors stand in the place of what the encoder gives.
        given = BaseModelOutput({states})
        hook = encoder.register_forward_hook(lambda *_, given=given: given)
        layers.append(model(**inputs).logits[0])
        hook.remove()"""
RANKS = """\
true = inputs["input_ids"][0]
ranks = np.array([(each >= each.gather(1, true[:, None])).sum(-1).numpy() for each in layers])"""
IN_TURN = """\
values, ranks = np.full(len(typed), np.nan), np.zeros(len(typed), int)
for position in sorted(set(range(len(typed))) - {others}):  # each is hidden alone; not special tokens and masks
    ids = inputs["input_ids"].clone()
    ids[0, position] = tokenizer.mask_token_id
    with torch.inference_mode():
        scores = model(**{{**inputs, "input_ids": ids}}).logits[0, position].double()
    values[position] = -scores.log_softmax(-1)[typed[position]] / np.log(2)
    ranks[position] = (scores >= scores[typed[position]]).sum()"""


def guesses(read: Input, position: int, hidden: Sequence[int] = (), k: int = 10, only_left: bool = False) -> Snippet:
    """The first `k` guesses at one position of the first text, with masks at the `hidden` positions.

    It sets `values` [k], the probabilities, and `pieces`.
    """
    if not _is_plain(read, only_left):
        return _by_backend(
            read,
            "guesses",
            {"hidden": list(hidden) or None, "k": k, "only_left": only_left or None},
            f"values = guesses.probabilities[-1, {position}]",
            f"pieces = [backend.tokenization.vocabulary[number] for number in guesses.ids[-1, {position}]]",
            "print(dict(zip(pieces, values)))",
        )
    return Snippet(
        _setup(read, only_left),
        (
            *_hide(hidden),
            SCORES,
            f"best = scores[0, {position}].double().softmax(-1).topk({k})",
            "values, pieces = best.values.numpy(), tokenizer.convert_ids_to_tokens(best.indices.tolist())",
            "print(dict(zip(pieces, values)))",
        ),
        is_plain=True,
    )


def through_layers(read: Input, hidden: Sequence[int] = (), k: int = 5, only_left: bool = False) -> Snippet:
    """The first `k` guesses at every layer and position, and the place of what is typed.

    It sets `values` [layer, token, k], the probabilities, `ids` of the same shape, and `ranks` [layer, token], which mean
    nothing at a mask in the text.
    """
    if not _is_plain(read, only_left):
        return _by_backend(
            read,
            "guesses",
            {"hidden": list(hidden) or None, "k": k, "only_left": only_left or None},
            "values, ids, ranks = guesses.probabilities, guesses.ids, guesses.true_ranks",
            "print(values, ids, ranks)  # [layer, token, k], [layer, token, k], [layer, token]",
        )
    norm = _final_norm(read)
    last = read.backend.facts.layers
    states = "states" if norm is None else f"states if len(layers) == {last} else encoder.{norm}(states)"
    return Snippet(
        _setup(read, only_left),
        (
            *_hide(hidden),
            LENS.replace("{states}", states),
            RANKS,
            f"best = torch.stack(layers).double().softmax(-1).topk({k})",
            "values, ids = best.values.numpy(), best.indices.numpy()",
            "print(values, [[tokenizer.convert_ids_to_tokens(token) for token in layer] for layer in ids.tolist()], ranks)",
        ),
        is_plain=True,
    )


def surprise(read: Input, only_left: bool = False) -> Snippet:
    """How surprised the model is by each token of the first text, and its pseudo-perplexity.

    It sets `values` [token] in bits, NaN for special tokens, and `pseudo_perplexity`.
    """
    if not _is_plain(read, only_left):
        return _by_backend(
            read,
            "surprises",
            {"only_left": only_left or None},
            "values, pseudo_perplexity = surprises.bits, surprises.pseudo_perplexity",
            "print(values, pseudo_perplexity)  # [token] in bits",
        )
    sentence, mask_id = _sentence(read), read.backend.tokenization.mask_id
    others = [token.position for token in sentence.tokens if token.special or token.id == mask_id]
    return Snippet(
        _setup(read, only_left),
        (
            'typed = inputs["input_ids"][0].tolist()',
            IN_TURN.format(others="{" + ", ".join(map(str, others)) + "}" if others else "set()"),
            "pseudo_perplexity = 2 ** np.nanmean(values)",
            "print(values, pseudo_perplexity)  # [token] in bits",
        ),
        is_plain=True,
    )


def _is_plain(read: Input, only_left: bool) -> bool:
    """Whether transformers alone can load the model and make the pass."""
    modules = read.backend.loaded.modules
    takes_mask = not modules.mask_names and modules.mask_reader is None
    is_lowered = _tokenizer_settings(read).is_lowered  # which a tokenizer has no argument for
    return read.backend.spec.source in ("hub", "folder") and (takes_mask or not only_left) and not is_lowered


def _tokenizer_settings(read: Input) -> EncoderSettings:
    """What the published folder says of how its tokenizer is built."""
    return read_encoder_settings(read.backend.loaded.folder, read.backend.spec.title)


def _text_and_pair(read: Input) -> tuple[str, str | None]:
    """The first text and its pair, with the masks as the tokenizer writes them."""
    tokenization = read.backend.tokenization
    pair = None if read.pairs is None else read.pairs[0]
    return with_masks(read.texts[0], tokenization), None if pair is None else with_masks(pair, tokenization)


def _sentence(read: Input) -> TokenizedSentence:
    text, pair = _text_and_pair(read)
    return read.backend.tokenize([text], [pair], read.max_length)[0]


def _setup(read: Input, only_left: bool) -> tuple[str, ...]:
    """The statements that load the model and split the text."""
    backend, (text, pair) = read.backend, _text_and_pair(read)
    sentence, key = _sentence(read), code.literal(read.backend.spec.key)
    load = code.call("AutoModelForMaskedLM.from_pretrained", key, "dtype=torch.float32")
    # What the tokenizer itself would leave out.
    segments = True if pair is not None and backend.tokenization.has_segments else None
    cut = len(sentence) if sentence.dropped else None
    written = [code.literal(each) for each in (text, pair) if each is not None]
    options = {"truncation": None if cut is None else True, "max_length": cut, "return_token_type_ids": segments}
    statements = [
        f"tokenizer = {code.call('AutoTokenizer.from_pretrained', key, **_tokenizer_settings(read).tokenizer)}",
        f"model = {load}.eval()  {code.about_model(backend)}",
        f"inputs = {code.call('tokenizer', *written, return_tensors='pt', **options)}",
    ]
    if only_left:
        size = len(sentence)
        statements.append(
            f'inputs["attention_mask"] = torch.full(({size}, {size}), torch.finfo(torch.float32).min).triu(1)[None, None]'
            "  # no token sees those after it"
        )
    return tuple(statements)


def _hide(hidden: Sequence[int]) -> tuple[str, ...]:
    """The statements that put masks into a copy of the input's ids."""
    copy = 'ids = inputs["input_ids"].clone()'
    if not hidden:
        return (copy,)
    return copy, f"ids[0, {code.literal(sorted(hidden))}] = tokenizer.mask_token_id"


def _final_norm(read: Input) -> str | None:
    """The name, within the encoder, of the norm that follows the last block, if there is one."""
    norm = read.backend.loaded.modules.final_norm
    if norm is None:
        return None
    return next(name for name, module in read.backend.encoder.named_modules() if module is norm)


def _by_backend(read: Input, method: str, options: dict[str, object], *body: str) -> Snippet:
    """The same by this project's own call, whose result has the method's name."""
    text, pair = _text_and_pair(read)
    named = {"pair": pair, "max_length": read.max_length, **options}
    return Snippet(
        (code.model(read.backend), code.texts([text])),
        (f"{method} = {code.call(f'backend.{method}', 'texts[0]', **named)}", *body),
    )
