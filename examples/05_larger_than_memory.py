"""More rows than memory holds: blocks, merging, files in chunks, Dask."""

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import sobolev_novelty as sn

equation = "-9.2*sin(angle) - 0.6*angle - 0.4*speed + 0.02*speed**2"


def measured(day: int) -> pd.DataFrame:
    """One day of measurements; in earnest this would come from a file or an instrument."""
    rng = np.random.default_rng(day)
    return pd.DataFrame({"angle": rng.uniform(-1, 1, 100_000), "speed": rng.uniform(0, 3, 100_000)})


# %% Block by block: the accumulator keeps a few small matrices, never the rows.
accumulator = sn.NoveltyAccumulator(equation)
for day in range(10):
    accumulator.update(measured(day))
report = accumulator.report()
print(report)
print(f"{report.n_samples} rows seen; the accumulator is {len(accumulator.to_bytes())} bytes.")

# %% The same as all rows at once.
whole = sn.novelty(equation, pd.concat(measured(day) for day in range(10)))
print("largest difference of a novelty:", f"{np.abs(whole.nu - report.nu).max():.1e}")

# %% Two halves, perhaps on two machines, merged.
first = sn.NoveltyAccumulator(equation).update(measured(0))
second = sn.NoveltyAccumulator.from_bytes(sn.NoveltyAccumulator(equation).update(measured(1)).to_bytes())
print("merged:", first.merge(second).report().nu.round(4))

# %% A file, some rows at a time. On the command line: sobolev report EQUATION data.csv --chunk-rows 20000
path = Path(tempfile.mkdtemp()) / "data.csv"
measured(0).head(50_000).to_csv(path, index=False)
with pd.read_csv(path, chunksize=20_000) as chunks:
    print("from a file:", sn.novelty_of_chunks(equation, chunks).nu.round(4))

# %% A Dask DataFrame, where Dask is installed: sn.novelty takes it like any other table.
try:
    import dask.dataframe as dd
except ImportError:
    print("Dask is not installed: pip install '.[dask]'")
else:
    table = dd.from_map(measured, range(4))
    print("from Dask:", sn.novelty(equation, table).nu.round(4))
