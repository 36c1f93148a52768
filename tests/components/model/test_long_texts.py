"""Long texts are tokenized in pieces: the same tokens and counts as of the whole text, no more work than is read, and Stop."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from components.errors import InputError
from components.jobs import Stopped
from components.model import tokenization as tokenization_module
from components.model.files import example_tokenizers
from components.model.files.splitting import text_cuts
from components.model.tokenization import Tokenization, clean_text
from tests.support import tiny

LLAMA = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def cased() -> PreTrainedTokenizerFast:
    """BERT's kind without lower case, in which accents stay."""
    return tiny.wordpiece_tokenizer(lowercase=False)


def xlm_roberta_kind(scheme: str = "always", *steps: Any) -> PreTrainedTokenizerFast:
    """A table of SentencePiece and one space for several before its pieces, as XLM-RoBERTa's."""
    tokenizer = tiny.unigram_tokenizer()
    units = bytes(4 * 256)  # of a trie without entries: every character stays
    table = len(units).to_bytes(4, "little") + units
    encoder = tokenizer.backend_tokenizer
    encoder.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(table),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            *steps,
        ]
    )
    encoder.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return tokenizer


def albert_kind() -> PreTrainedTokenizerFast:
    """Marks are removed and letters made small too, as ALBERT's."""
    return xlm_roberta_kind("always", normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase())


def llama_kind() -> PreTrainedTokenizerFast:
    """Byte-level pieces by the pattern of Llama 3, as EuroBERT's."""
    tokenizer = tiny.byte_level_tokenizer()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def roberta_kind() -> PreTrainedTokenizerFast:
    """Every text begins with a space, and <mask> takes those before it, as in RoBERTa."""
    tokenizer = tiny.byte_level_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True)})
    return tokenizer


def words_by_space() -> PreTrainedTokenizerFast:
    """CamemBERT's kind: white space parts words, each of which gets a mark in front."""
    tokenizer = tiny.unigram_tokenizer()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    return tokenizer


KINDS: dict[str, Any] = {
    "WordPiece": tiny.wordpiece_tokenizer,
    "WordPiece, cased": cased,
    "MPNet": tiny.mpnet_tokenizer,
    "byte-level BPE": tiny.byte_level_tokenizer,
    "byte-level BPE, a space in front": roberta_kind,
    "byte-level BPE, Llama's pattern": llama_kind,
    "Unigram": tiny.unigram_tokenizer,
    "Unigram behind SentencePiece's table": xlm_roberta_kind,
    "Unigram behind SentencePiece's table, first": lambda: xlm_roberta_kind("first"),
    "Unigram without marks": albert_kind,
    "Unigram of words": words_by_space,
}
EXAMPLES = sorted(example_tokenizers.EXAMPLES)

# Words of the tiny vocabularies and what tokenizers treat apart; twelve scripts, two of them without spaces.
WORDS = [
    *("the", "bank", "river", "Walking", "É", "e\u0301", "naïve", "can't", "x.y", "3.14", "A" * 120, "[SEP]", "<mask>"),
    *("</s>", "[MASK", "SEP]", "'s", "'ll", "...", "!?", ".", ",", "_", "▁", "▁▁the", "Ġbank", "``", "#"),
    *(
        "банк реки",
        "τράπεζα ς",
        "שלום",
        "مرحبا",
        "हिन्दी",
        "ภาษาไทยไม่มีช่องว่าง",
        "你好世界。今天",
        "日本語のテキスト",
        "한국어",
    ),
    *("한글", "বাংলা", "தமிழ்", "አማርኛ", "ქართული", "ﬁne", "½", "ǅ", "İstanbul", "ß", "ﷺ", "ﹰ", "ﹱa", "\u037a", "´"),
    *("🏦", "👩🏽‍🚀", "🇩🇪", "\u0600", "\u06dd", "ൎ", "\u0301", "\u0338", "\u0345", "\ufe0f", "\u200d", "ำ", "\u1160"),
]
SPACES = [
    *(" ", " ", " ", "  ", "    ", "\n", "\t", "\r\n", "\r", " \n", "\n ", "\u00a0", " \u00a0", "\u3000", "\u2028"),
    *(
        "",
        "",
        "\u200b",
        " \u200b ",
        "\u0000",
        "\u00ad",
        "\x85",
        "\x1c",
        " \x1c ",
        "\u202e",
        "\ufeff",
        " \u0301",
        "\u0301 ",
    ),
]
LONG = st.sampled_from(
    [" " * 30, "\n" * 25, "a" * 40, "\u0301" * 30, "a\u0301" * 20, "ไทย" * 15, "你" * 30, "🏦" * 12, ". " * 15]
)
TEXTS = st.lists(
    st.one_of(st.sampled_from(WORDS), st.sampled_from(SPACES), st.sampled_from(SPACES), LONG, st.text(max_size=3)),
    max_size=30,
).map("".join)


def tokenization_of(kind: str) -> Tokenization:
    if kind in example_tokenizers.EXAMPLES:
        return example_tokenizers.load(kind)
    return Tokenization(KINDS[kind](), 64, kind.startswith("WordPiece"))


@pytest.fixture(scope="module", params=[*KINDS, *EXAMPLES, "embedded"])
def tokenizer(request, embedded_folder):
    """A tokenization that divides its texts, and what the library gives for the whole of a text."""
    if request.param == "embedded":
        tokenization = Tokenization(AutoTokenizer.from_pretrained(embedded_folder), 512, True)
    else:
        tokenization = tokenization_of(request.param)
    assert tokenization.place_to_cut is not None
    return tokenization


@pytest.fixture
def short_pieces(monkeypatch):
    """Pieces of a few characters, so that short texts have many."""
    monkeypatch.setattr(text_cuts, "PIECE_CHARACTERS", 6)
    monkeypatch.setattr(tokenization_module, "BATCH_CHARACTERS", 40)


def checked(count: int) -> Any:
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def whole_ids(tokenization: Tokenization, text: str) -> list[int]:
    """All tokens of a text that is tokenized whole, without special tokens: no code of ours."""
    ids: list[int] = tokenization._encoder.encode(clean_text(text), add_special_tokens=False).ids
    return ids


@checked(40)
@given(text=TEXTS, limit=st.integers(4, 60))
@example(text="the \u0301\u0301 bank" * 3, limit=60)
@example(text="bank \u200b  \u200b bank \u200b river", limit=60)
def test_the_pieces_of_a_text_have_the_tokens_of_the_whole(tokenizer, short_pieces, text, limit):
    whole = whole_ids(tokenizer, text)
    before, after = tokenizer.frame
    room = limit - tokenizer.frame_length
    (ids,), (was_truncated,) = tokenizer.encode_many([text], limit)
    assert ids == [*before, *whole[:room], *after]
    assert was_truncated == (len(whole) > room)
    assert tokenizer.lengths([text, "", text]) == [
        len(whole) + tokenizer.frame_length,
        tokenizer.frame_length,
        len(whole) + tokenizer.frame_length,
    ]


@checked(20)
@given(text=TEXTS, limit=st.integers(4, 60))
def test_a_record_of_a_long_text_is_that_of_the_whole(tokenizer, short_pieces, text, limit):
    text = clean_text(text)
    ours = tokenizer.tokenize(text, max_length=limit)
    begun = tokenizer.tokenize(tokenizer.beginning(text, limit), max_length=limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_cuts, "PIECE_CHARACTERS", 10**9)
        expected = tokenizer.tokenize(text, max_length=limit)
    assert ours == expected  # the tokens with their spans and words, and what was dropped
    assert begun.tokens == expected.tokens
    assert text.startswith(begun.text)


@checked(20)
@given(first=TEXTS, second=TEXTS, limit=st.integers(5, 60), truncation=st.sampled_from(tokenization_module.TRUNCATIONS))
def test_pairs_of_long_texts_are_read_as_whole_ones(tokenizer, short_pieces, first, second, limit, truncation):
    first, second = clean_text(first), clean_text(second)
    limit = max(limit, tokenizer.pair_frame_length + 1)

    def read() -> Any:
        try:
            record = tokenizer.tokenize(first, second, limit, truncation)
        except InputError as problem:
            return str(problem)
        return record

    def ids() -> Any:
        try:
            return tokenizer.encode_pairs([first, "the bank", first], [second, "a cat", second], limit, truncation)
        except InputError as problem:
            return str(problem)

    ours, our_ids = read(), ids()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_cuts, "PIECE_CHARACTERS", 10**9)
        expected, expected_ids = read(), ids()
    assert ours == expected
    assert our_ids == expected_ids
    if not isinstance(our_ids, str):
        assert [token.id for token in ours.tokens] == our_ids[0][0] == our_ids[2][0]


@pytest.mark.parametrize("truncation", tokenization_module.TRUNCATIONS)
def test_pairs_of_long_texts_are_cut_as_transformers_cuts_them(embedded_folder, short_pieces, truncation):
    tokenization = Tokenization(AutoTokenizer.from_pretrained(embedded_folder), 512, True)
    theirs = AutoTokenizer.from_pretrained(embedded_folder)
    randomness = random.Random(4)
    long = ["".join(randomness.choices([*WORDS, *SPACES], k=60)) for _ in range(12)]
    short = ["the bank", "a river"]
    for first in [*short, *(long if truncation == "longest_first" else [])]:
        for second in [*short, *long]:
            first, second = clean_text(first), clean_text(second)
            for limit in (20, 21, 64):
                expected = theirs(first, second, truncation=truncation, max_length=limit)
                ((ids, segments),) = tokenization.encode_pairs([first], [second], limit, truncation)
                assert ids == expected["input_ids"]
                assert segments == expected["token_type_ids"]


@pytest.mark.parametrize("kind", ["WordPiece", "byte-level BPE", "Unigram"])
def test_only_so_much_of_a_long_text_is_tokenized_as_is_read(kind, monkeypatch):
    tokenization = tokenization_of(kind)
    given_to_the_library: list[int] = []
    plain = tokenization.encoded

    def counting(texts, *options, **more):
        given_to_the_library.append(sum(map(len, texts)))
        return plain(texts, *options, **more)

    monkeypatch.setattr(tokenization, "encoded", counting)
    text = "the bank " * 200_000
    tokenization.encode_many([text] * 3, 64)
    tokenization.encode_pairs(["the river"] * 3, [text] * 3, 64)
    tokenization.encode_pairs(["the river"], [text], 64, "only_second")
    tokenization.beginning(text, 64)
    assert sum(given_to_the_library) < 10 * (text_cuts.PIECE_CHARACTERS + 100)
    given_to_the_library.clear()
    assert tokenization.lengths([text]) == [len(whole_ids(tokenization, text)) + tokenization.frame_length]
    assert sum(given_to_the_library) == len(text)  # each character once


@pytest.mark.parametrize("kind", ["WordPiece", "byte-level BPE", "Unigram"])
def test_stop_is_asked_for_every_batch_of_a_long_text(kind):
    tokenization = tokenization_of(kind)
    text = "the bank " * 200_000  # 1.8 MB
    asked = 0

    def count_questions() -> bool:
        nonlocal asked
        asked += 1
        return False

    most = tokenization_module.BATCH_CHARACTERS
    tokenization.lengths([text], count_questions)
    assert asked >= len(text) / most
    # Few tokens of much text: the whole of it is gone through, piece by piece.
    asked, blank = 0, " \n" * 900_000
    assert tokenization_of("WordPiece").encode_many([blank], 64, count_questions)[1] == [False]
    assert asked >= len(blank) / most
    for work in (
        lambda stop: tokenization.lengths([text], stop),
        lambda stop: tokenization.encode_many(["the bank"] * 10_000, 64, stop),
        lambda stop: tokenization.encode_pairs([text], [text], 64, "longest_first", stop),
        lambda stop: tokenization_of("WordPiece").encode_many([blank], 64, stop),
    ):
        asked = 0

        def stop() -> bool:
            nonlocal asked
            asked += 1
            return asked > 2

        with pytest.raises(Stopped):
            work(stop)
        assert asked == 3


def test_the_library_gets_no_more_than_a_batch_at_once(monkeypatch):
    tokenization = tokenization_of("WordPiece")
    calls: list[tuple[int, int]] = []
    plain = tokenization.encoded

    def counting(texts, *options, **more):
        calls.append((len(texts), sum(map(len, texts))))
        return plain(texts, *options, **more)

    monkeypatch.setattr(tokenization, "encoded", counting)
    texts = ["the bank " * 110_000] * 5 + [""] * 9_000 + ["the river"] * 9_000
    tokenization.encode_many(texts, 64)
    tokenization.lengths(texts)
    tokenization.encode_pairs(texts[:100], texts[-100:], 64)
    most = tokenization_module.BATCH_CHARACTERS
    assert max(size for _, size in calls) <= most
    assert max(count for count, _ in calls) <= most / 32
    assert min(len(calls), 20) == 20


def test_a_pair_of_long_texts_cut_to_few_tokens_joins_no_rest(monkeypatch):
    """The library's own truncation keeps the rest in parts as long as the beginning, and joins each with each."""
    tokenization = tokenization_of("WordPiece")
    joined: list[Any] = []
    plain = tokenization._joined

    def remember(first, second):
        joined.append(plain(first, second))
        return joined[-1]

    monkeypatch.setattr(tokenization, "_joined", remember)
    text = "the bank " * 15
    record = tokenization.tokenize(text, text, 5)
    rows = tokenization.encode_pairs([text], [text], 5)
    assert [part.overflowing for part in joined] == [[], []]
    assert [token.piece for token in record.tokens] == ["[CLS]", "the", "[SEP]", "the", "[SEP]"]
    assert [token.id for token in record.tokens] == rows[0][0]
    assert [(cut.start, cut.tokens, cut.of_pair) for cut in record.dropped] == [(4, 29, False), (4, 29, True)]


@pytest.mark.parametrize(
    "change",
    [
        lambda encoder: setattr(encoder, "pre_tokenizer", pre_tokenizers.Split(Regex("a b"), "isolated")),
        lambda encoder: setattr(encoder, "pre_tokenizer", pre_tokenizers.Metaspace(split=False)),
        lambda encoder: setattr(encoder, "pre_tokenizer", None),
        lambda encoder: setattr(encoder, "normalizer", normalizers.Prepend("▁")),
        lambda encoder: setattr(encoder, "normalizer", normalizers.Replace(Regex(r"\s+"), "▁")),
        lambda encoder: setattr(encoder, "normalizer", normalizers.Replace("the ", "a")),
        lambda encoder: encoder.add_tokens([AddedToken("the bank")]),
        lambda encoder: encoder.add_special_tokens([AddedToken("<x>", rstrip=True)]),
    ],
)
def test_a_tokenizer_that_may_look_past_a_space_gets_its_texts_whole(change, short_pieces):
    tokenizer = tiny.wordpiece_tokenizer()
    change(tokenizer.backend_tokenizer)
    tokenization = Tokenization(tokenizer, 64, True)
    assert tokenization.place_to_cut is None
    text = "the bank a b <x> the  bank " * 4
    assert list(text_cuts.pieces(text, None)) == [text]
    assert tokenization.encode_many([text])[0][0][1:-1] == whole_ids(tokenization, text)[:62]


def test_pieces_join_to_the_text_and_are_no_longer_than_they_must_be():
    place = text_cuts.place_to_cut(tiny.byte_level_tokenizer().backend_tokenizer)
    size = text_cuts.PIECE_CHARACTERS
    for text in ("", "a", "word " * 50_000, " " * 100_000, "x" * 100_000 + " y" * 40_000):
        found = list(text_cuts.pieces(text, place))
        assert "".join(found) == text
    assert max(map(len, text_cuts.pieces("word " * 50_000, place))) <= size + 5
    assert next(map(len, text_cuts.pieces("x" * 100_000 + " y" * 40_000, place))) == 100_000


def test_the_vocabulary_may_join_across_no_cut():
    """A word-level model without marks sees no more than the pre-tokenizer leaves together."""
    tokenizer = Tokenizer(models.WordLevel({"the": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    place = text_cuts.place_to_cut(tokenizer)
    assert place is not None
    assert place.search("the.bank") is None  # it does not isolate each mark
    assert place.search("the bank").start() == 3
