"""Terms proposed in words: by a language model where an endpoint is given, by a grammar otherwise.

Set SOBOLEV_LLM_URL (http://127.0.0.1:8080/v1) and SOBOLEV_LLM_MODEL to ask a model; a key in SOBOLEV_LLM_KEY.
"""

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import sobolev_novelty as sn

rng = np.random.default_rng(0)
table = pd.DataFrame(
    {"mass": rng.uniform(1, 5, 300), "speed": rng.uniform(1, 2, 300), "height": rng.uniform(1, 3, 300)}
)
energy = pd.Series(0.5 * table["mass"] * table["speed"] ** 2 + 9.81 * table["mass"] * table["height"], name="energy")

# %% Who proposes: a model behind an endpoint, or the grammar sampler, which needs none.
url = os.environ.get("SOBOLEV_LLM_URL")
proposer = sn.ChatProposer(url, os.environ.get("SOBOLEV_LLM_MODEL", "default")) if url else sn.GrammarSampler()
print("terms come from:", proposer.model)

# %% The search. Calls are limited; the result says what was asked, offered and kept.
engine = sn.IGSR(proposer, limits=sn.Limits(calls=60), descriptions={"speed": "metres per second"})
model = sn.SymbolicRegressor(engine, budget=sn.Budget(max_evaluations=600), random_state=0).fit(table, energy)
print(model.expression_)
print(f"R² {model.score(table, energy):.6f}")
print(", ".join(f"{name}: {value}" for name, value in model.counts_.items()))

# %% What a proposer is told about a model whose terms repeat each other (with novelty=True, the default).
print(sn.feedback("mass + log(mass) + speed", table))

# %% A transcript keeps every call; replayed, it gives the same model without asking anyone.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "calls.jsonl"
    fits = []
    for source in (sn.Transcript(path, proposer), sn.Transcript(path)):
        engine = sn.IGSR(source, limits=sn.Limits(calls=10))
        fits.append(
            sn.SymbolicRegressor(engine, budget=sn.Budget(max_evaluations=100), random_state=0).fit(table, energy)
        )
    print(
        "replayed:", fits[1].counts_["calls replayed"], "calls; same model:", fits[0].expression_ == fits[1].expression_
    )
