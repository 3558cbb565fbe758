"""A report -> terminal, LaTeX, figure, page.

Every function here takes the plain dict of ``NoveltyReport.to_dict()`` and none imports the report: what is drawn is
what is stored as JSON, and a report read back from a file is drawn in the same way.

::

    sentences.py  what the numbers say, as sentences; shared by all
    terminal.py   a rich table
    latex.py      a booktabs table
    figure.py     matplotlib
    svg.py        bars and the matrix, for the page
    mathml.py     formulas as browsers set them, for the page
    page.py       one self-contained HTML page, and the fragment for notebooks
"""
