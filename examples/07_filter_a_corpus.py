"""Filter a corpus of formulas: keep those whose terms are all novel, and say why the others are not."""

# %%
import json
import tempfile
from pathlib import Path

from sobolev_novelty.lab.pretraining.corpus_filter import FormulaJudge, Inputs, filter_formulas

folder = Path(tempfile.mkdtemp())
formulas = folder / "formulas.txt"
formulas.write_text(
    "1 + 2*x0 + 0.5*x0**2\n"
    "x0*cos(x1) + 0.5*x1\n"
    "mass*speed**2/2 + mass*height\n"
    "x0 + x0**1.05\n"
    "log(-1 - x0**2)\n"
    "2*(x0 +\n"
)

# %% As ``sobolev filter formulas.txt --inputs uniform:1,5 --out kept.txt`` does.
judge = FormulaJudge(Inputs.of("uniform:1,5"))
kept, reasons = folder / "kept.txt", folder / "reasons.jsonl"
print(filter_formulas(formulas, kept, judge, reasons=reasons))
print(kept.read_text())

# %% Why.
for line in reasons.read_text().splitlines():
    row = json.loads(line)
    print(f"{row['line']}: {row['formula']}\n   {row['reason']}")

# %% The same formulas on other inputs: what repeats itself between 1 and 5 may be distinct around 0.
texts = formulas.read_text().splitlines()
for text, outcome in zip(texts, FormulaJudge(Inputs.of("normal")).outcomes(texts), strict=True):
    print(f"{outcome:>12}  {text}")
