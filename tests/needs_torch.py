"""What the tests of the transformer share: a compiled corpus unit, small settings, one thread.

They import this module before the package's, so that they are skipped where torch is missing.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the transformer needs torch: pip install '.[transformer]'")

from needs_corpus_unit import corpus_unit  # noqa: E402, F401
from sobolev_novelty.engines.transformer.corpus import Corpus, CorpusSettings  # noqa: E402
from sobolev_novelty.engines.transformer.settings import RunSettings  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Threads that wait for each other are slow on a busy machine, and sums in one thread have one order."""
    torch.set_num_threads(1)


def corpus(law: str = "lean", *, with_floats: bool = False, **changes: Any) -> Corpus:
    return Corpus(CorpusSettings.of_law(law, **{"seed": 7, **changes}), with_floats)


def tiny(**training: Any) -> RunSettings:
    """A network of some thousand weights on formulas of up to two inputs."""
    return RunSettings.from_dict(
        {
            "corpus": {"law": "lean", "seed": 3, "dimensions": [1.0, 1.0], "max_nodes": 12},
            "model": {"tokens": "skeleton", "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"samples": 48, "batch": 4, "warmup_steps": 3, "validation": 8, **training},
        }
    )
