"""Modules of one name in modules.json: as in sentence-transformers, a later one takes the place of the earlier."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from components.errors import ModelError
from components.model.backend import Backend
from components.model.files.published import listed_modules, read_modules
from components.model.files.sources import ModelFiles
from components.model.verification.comparison import SAME, TEXTS, compared, own_vectors
from components.model.verification.published_copy import published_copy
from tests.support.tiny import Module, dense_module, pooling_module, publish, save_tiny

FEW = TEXTS[::2]
NORMALIZE: Module = ("Normalize", {})


def named(folder: Path, names: str, *modules: Module) -> Path:
    """A folder whose modules, the encoder included, have these names of one letter."""
    publish(save_tiny(folder), *modules)
    listed = json.loads((folder / "modules.json").read_text())
    for entry, name in zip(listed, names, strict=True):
        entry["name"] = name
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


@pytest.mark.parametrize(
    ("names", "modules", "lost"),
    [
        ("0122", (pooling_module(), dense_module(32, 32), dense_module(32, 32, "Identity")), "2_Dense"),
        ("0112", (pooling_module("cls_token"), pooling_module(), dense_module(32, 8)), "1_Pooling"),
        ("0122", (pooling_module(), dense_module(32, 8), NORMALIZE), "2_Dense"),
        # It takes the place of the first, before what stood between them.
        ("01232", (pooling_module(), dense_module(32, 32), NORMALIZE, dense_module(32, 32, "Identity")), "2_Dense"),
    ],
)
def test_a_later_module_replaces_an_earlier_one_in_its_place(
    names: str, modules: tuple[Module, ...], lost: str, tmp_path: Path
) -> None:
    folder = named(tmp_path / "m", names, *modules)
    own = Backend.load(str(folder), device_name="cpu")
    theirs = SentenceTransformer(str(folder), device="cpu").encode(list(FEW), batch_size=1)
    assert max(item.difference for item in compared(FEW, "", theirs, own_vectors(own, FEW, ""))) < SAME
    (said,) = own.not_applied
    assert f"the name “{names[int(lost[0])]}” to two modules" in said
    assert f"{lost} is not applied" in said
    with published_copy(ModelFiles(folder, "r"), "model") as copy:
        again = SentenceTransformer(str(copy), device="cpu").encode(list(FEW), batch_size=1)
        assert len(listed_modules(copy)) == len(names)
        assert [module.kind for module in read_modules(copy)] == [module.kind for module in read_modules(folder)]
    np.testing.assert_allclose(again, theirs, atol=1e-6)


@pytest.mark.parametrize(
    ("names", "modules"),
    [("011", (pooling_module(), NORMALIZE)), ("00", (pooling_module(),)), ("010", (pooling_module(), NORMALIZE))],
)
def test_what_the_library_fails_at_is_refused(names: str, modules: tuple[Module, ...], tmp_path: Path) -> None:
    folder = named(tmp_path / "m", names, *modules)
    with pytest.raises(ModelError, match="two modules the name"):
        Backend.load(str(folder), device_name="cpu")
    with pytest.raises(Exception):  # noqa: B017, PT011 - of several kinds, at loading or at the first text
        SentenceTransformer(str(folder), device="cpu").encode("a b")


def test_modules_without_names_are_all_kept(tmp_path: Path) -> None:
    folder = named(tmp_path / "m", "012", pooling_module(), NORMALIZE)
    listed = [
        {key: entry[key] for key in ("type", "path")} for entry in json.loads((folder / "modules.json").read_text())
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    assert [module.kind for module in read_modules(folder)] == ["Transformer", "Pooling", "Normalize"]
