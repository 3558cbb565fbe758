"""Which terms of an equation do the data tell apart? One call, one picture, one page."""

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import sobolev_novelty as sn

rng = np.random.default_rng(0)
data = pd.DataFrame({"angle": rng.uniform(-1, 1, 500), "speed": rng.uniform(0, 3, 500)})
equation = "-9.2*sin(angle) - 0.6*angle - 0.4*speed + 0.02*speed**2"

# %% The report: a table, a verdict in words, what rebuilds what.
report = sn.novelty(equation, data, n_bootstrap=100, random_state=0)
print(report)

# %% The numbers behind it.
print(report.table.round(3).to_string())
print(report.explain(0))

# %% The same equation where the pendulum swings wide: now the data tell the sine from the straight line.
wide = data.assign(angle=rng.uniform(-6, 6, 500))
print(sn.novelty(equation, wide))

# %% A figure, a page for a colleague, a table for the paper.
folder = Path(tempfile.mkdtemp())
report.plot().savefig(folder / "report.png")
report.to_html(folder / "report.html")
print(report.latex_table())
print("written:", ", ".join(sorted(path.name for path in folder.iterdir())))
