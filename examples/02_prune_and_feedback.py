"""The signal for search methods: prune a formula, rank candidates, keep an archive, talk to a language model."""

# %%
import numpy as np

import sobolev_novelty as sn

rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, 400)
X = x[:, None]
y = 2.4 * np.sin(x) + 0.8 * np.cos(2 * x) + 0.01 * rng.normal(size=400)
found = "2.1*sin(x0) + 0.3*x0 + 0.8*cos(2*x0)"

# %% Delete what the others can do, refit the rest; never worse by your own score.
slim = sn.prune(found, X, y)
print(found, "->", slim)
for step in slim.steps:
    print(
        f"  deleted {step.term} (novelty {step.novelty:.3f}), score {step.score_before:.4f} -> {step.score_after:.4f}"
    )

# %% Of two candidates that fit alike, the one whose terms are all needed comes first.
candidates = [found, "2.4*sin(x0) + 0.8*cos(2*x0)"]
for ranked in sn.rerank(candidates, X, scores=[0.981, 0.980]):
    print(f"{ranked.guided_score:.4f}  {ranked.candidate}")

# %% An archive that keeps behaviours, not spellings.
archive = sn.TermArchive(capacity=3)
archive.update(["x0", "sin(x0)", "x0**3", "cos(2*x0)", "exp(x0)"], X)
print("archive:", ", ".join(str(term) for term in archive.terms))

# %% Words for the next prompt of a language model.
print(sn.feedback(found, X))

# %% The corpus filter.
for candidate in candidates:
    verdict = sn.accepts(candidate, X)
    print("accepted" if verdict else "rejected", "-", verdict.reason)
