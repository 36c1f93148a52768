"""The process in which sentence-transformers embeds texts: `python -m components.model.verification.reference`.

It reads one JSON object from standard input: `folder` (a checked copy), `texts`, `roles`, `vectors` (the file to write, float32
[role, text, dim]), `memory` (bytes that it may take beyond what the library has taken when it is imported) and perhaps `steps`
(another file to write: the pieces and vectors that each module hands on, for one text in one role). It writes the library's
version to standard output as JSON. When it fails, the last line of standard error says why. Nothing else of the program imports
this module: a server never loads the library.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

FAILED = 3  # the exit status when the library cannot load or run the model
CPU_SECONDS = 3_600  # beyond the limit on time, in case that nobody ends this process
NICENESS = 10  # of its work beside pages that are drawn
STEPS = ("input_ids", "token_embeddings", "sentence_embedding")  # what modules hand on
BATCH = 1  # texts at a time: with padding at the left, or weights of 16 bits, neighbours change a text's vector


def main() -> int:
    """Embed what standard input says, and return the exit status."""
    asked = json.load(sys.stdin)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        version, vectors = embedded(asked)
    except BaseException as problem:  # noqa: BLE001 - a library's panic too: the process is there for this
        lines = str(problem).strip().splitlines() or [""]
        sys.stderr.write(f"\n{type(problem).__name__}: {lines[0][:300]}\n")
        return FAILED
    import numpy as np

    np.save(Path(asked["vectors"]), vectors)
    sys.stdout.write(json.dumps({"version": version}))
    return 0


def embedded(asked: dict[str, Any]) -> tuple[str, Any]:
    """The library's version, and its vectors, float32 [role, text, dim]. Its errors are passed on."""
    warnings.simplefilter("ignore")
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer, __version__

    _limit(int(asked["memory"]))
    model = SentenceTransformer(
        asked["folder"],
        device="cpu",
        local_files_only=True,
        trust_remote_code=False,
        # As here: weights of 16 bits are made 32 before anything is computed.
        model_kwargs={"dtype": torch.float32, "use_safetensors": True},
    )
    encode = {"": model.encode, "query": model.encode_query, "document": model.encode_document}
    if asked.get("steps"):
        kept: list[dict[str, Any]] = []

        def keep(module: Any, _: Any, features: dict[str, Any]) -> None:
            # A later module may write over what an earlier one gave.
            kept.append({key: features[key][0].detach().float().numpy().copy() for key in STEPS if key in features})

        for module in model:
            module.register_forward_hook(keep)
    vectors = [
        encode[role](asked["texts"], batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        for role in asked["roles"]
    ]
    if asked.get("steps"):
        np.savez(
            asked["steps"], **{f"{key} {at}": value for at, after in enumerate(kept) for key, value in after.items()}
        )
    return __version__, np.asarray(vectors, dtype=np.float32)


def _limit(memory: int) -> None:
    """Let this process take so many bytes more, and so many seconds of a processor, where the system can hold it to that."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    sys.exit(main())
