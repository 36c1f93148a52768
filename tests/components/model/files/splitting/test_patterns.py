"""A stranger's regular expression cannot hold the server: what is allowed takes a time that grows with the text alone."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import time
from pathlib import Path

import pytest
from tokenizers import Regex, pre_tokenizers
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from components.errors import ModelError
from components.model import loading
from components.model.files.splitting.patterns import MOST_TRIES, PUBLISHED, QWEN2, is_quick
from tests.support import odd_models, tiny
from tests.support.rare_cases import but_a_few

STRANGERS = "[^ ]*" * 9 + "(?!)"
SLOW = (
    STRANGERS,
    "(a+)+$",
    "[^ ]*(?!)",
    r"\s*\n",
    r"\w+x",
    "a*a*",
    "a?" * 9 + "a" * 9,
    "a{1,9}b",
    "a{3}{3}",
    "a{,999}b",
    "a{999}b",
    "a*+b",
    "((a{1,999}){1,999}){1,999}",
    r"(.)\1",
    r"\X*",
    r"(?<=a.*)b",
    "(?~a)",
    "^a*",
    "|".join("abcdefghi" for _ in range(100)),
    "a|" + STRANGERS,
)
SIMPLE = (
    *("", " {2,}", r"\s+", r"[\s\S]", " +", r"\s{2,}|[\n\r\t]", r"[\n\r\t]", r"\p{N}", r"\p{N}{1,3}", "[0-9][0-9][0-9]"),
    *("'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+", r" ?[^(\s|[.,!?…。，、।۔،])]+", "[\u4e00-\u9fa5]+"),
    *(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "foo", "."),
)  # fmt: skip
# What makes a part take much, and the next one fail.
HARD = ("a", "A", " ", " \n", "\n ", "1", "!", "\u4f60", "\u0301", "A\u0301", "ab", "a1", "'s", " a", "\r", "/", "'")


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_can_try_again_is_refused(pattern: str) -> None:
    assert not is_quick(pattern)


@pytest.mark.parametrize("pattern", but_a_few([*sorted(PUBLISHED), *SIMPLE], 8))
def test_an_allowed_pattern_takes_a_time_that_grows_with_the_text(pattern: str) -> None:
    """With the square of 20,000 characters, each text would take seconds. Of this thread: others of the process work too."""
    assert is_quick(pattern)
    step = pre_tokenizers.Split(Regex(pattern), "isolated")
    texts = [hard * (20_000 // len(hard)) + end for hard in HARD for end in ("", "x\n")]
    started = time.thread_time()
    for text in texts:
        step.pre_tokenize_str(text)
    assert time.thread_time() - started < 0.2 * len(texts)


@pytest.mark.parametrize("part", ["a?a?a?ab", r"\p{L}{40}b", "[^b]{99}b", "a?b", "a{2,9}", "a{90,}", "aaaaaaaab"])
def test_the_slowest_pattern_of_single_characters_is_quick_too(part: str) -> None:
    most = next(number for number in range(MOST_TRIES, 0, -1) if is_quick("|".join([part] * number)))
    step = pre_tokenizers.Split(Regex("|".join([part] * most)), "isolated")
    started = time.thread_time()
    step.pre_tokenize_str("a" * 20_000)
    assert time.thread_time() - started < 1


def test_the_patterns_that_the_library_itself_writes_are_allowed() -> None:
    """For tokenizers without a tokenizer.json: those of its sources that a file of a supported model could lead to."""
    assert PRETOKENIZE_REGEX == QWEN2
    names = ("convert_slow_tokenizer", "tokenization_utils_tokenizers")
    code = "".join(inspect.getsource(importlib.import_module(f"transformers.{name}")) for name in names)
    written = re.findall(r'Regex\(\s*r?(?:"""|")(.*?)(?:"""|")\s*\)', code)
    written += re.findall(r'pattern=r"""(.*?)"""', code)
    assert len(written) >= 8
    assert [pattern for pattern in written if not is_quick(pattern)] == []


@pytest.mark.parametrize("part", ["pre_tokenizer", "normalizer", "decoder"])
def test_a_strangers_tokenizer_with_such_a_pattern_is_refused_before_it_is_built(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.save_tiny(tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    if part == "pre_tokenizer":
        content[part] = {"type": "Split", "pattern": {"Regex": STRANGERS}, "behavior": "Isolated", "invert": False}
    else:
        content[part] = odd_models.replacing({"Regex": STRANGERS}, "")
    (folder / "tokenizer.json").write_text(json.dumps(content))
    monkeypatch.setattr("tokenizers.Tokenizer.from_str", pytest.fail)
    monkeypatch.setattr("tokenizers.Tokenizer.from_file", pytest.fail)
    with pytest.raises(ModelError, match="which could take minutes for a sentence") as refusal:
        loading.from_pretrained(folder, "x")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400
