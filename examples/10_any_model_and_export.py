"""Whatever fitted the equation: is my term real, and how do I take the equation elsewhere?"""

# %%
import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import sobolev_novelty as sn

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 2))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.02 * rng.normal(size=300)

# %% A polynomial of scikit-learn goes in as it is. Its terms are distinct; that does not yet make them needed.
model = make_pipeline(StandardScaler(), PolynomialFeatures(3, include_bias=False), LassoCV()).fit(X, y)
report = sn.novelty(model, X)
print(f"{int(report.qualified.sum())} of {len(report)} terms are distinct")
slim = sn.prune(model, X, y)
print(repr(slim))

# %% Several candidates side by side, whoever made them.
print(sn.rank([model, "sin(2*x0) + 0.5*x1**2", slim.expression], X, y))

# %% Functions are terms, too; the report says how they were differentiated.
print(sn.novelty([lambda X: np.sin(2 * X[:, 0]), lambda X: np.maximum(X[:, 0], 0)], X).notes[0])

# %% Out again: called, for a spreadsheet, for C.
law = sn.parse("sin(2*x0) + 0.5*x1**2")
print(law(x0=0.5, x1=1.0))
print(law.to("excel"))
print(law.to("c"))
