"""Where modules were before 0.2: old import paths answer for one release, with a warning.

One table says what moved; a folder that has the name of an old module hands on what is asked of that.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = "sobolev_novelty."
#: Folder -> what moved there, with a new name after ">" where it got one.
_NOW = {
    "algebra": "terms",
    "core": ("data>sample digits expression geometry json_numbers operators output parameters progress scoring>score"),
    "core.linear": "least_squares projection tangent",
    "core.operators": "elementwise function_terms interval_arithmetic",
    "engines": "igsr search.genetic search.mcts search.template_engine>template search.variation transformer",
    "engines.igsr.talk": "igsr.answers igsr.chat igsr.protocol igsr.transcript",
    "engines.paper": "search.paper_gp>gp search.paper_mcts>mcts",
    "engines.transformer": (
        "transformer.checkpoint transformer.corpus transformer.decoding transformer.engine transformer.model "
        "transformer.pretrained transformer.safetensors transformer.sampling transformer.settings "
        "transformer.skeletons transformer.tokenizer"
    ),
    "engines.transformer.corpus": "transformer.decontaminate",
    "kernels": "evaluation>evaluate",
    "lab": "bench evidence turbulence",
    "lab.bench.judging": (
        "bench.against_line bench.candidates bench.everyday_results bench.exact bench.failures bench.judge "
        "bench.yardstick"
    ),
    "lab.bench.planted": "bench.planted bench.planted_run>run bench.planted_scores>scores",
    "lab.bench.problems": "bench.anchors bench.everyday bench.odebench bench.suites bench.tasks",
    "lab.bench.running": (
        "bench.experiment bench.isolation bench.methods bench.nursery bench.peer_methods bench.progress "
        "bench.run bench.starting bench.store bench.worker"
    ),
    "lab.bench.showing": (
        "bench.bootstrap bench.contrasts bench.figures bench.gap bench.overview bench.page bench.paper "
        "bench.pretraining bench.pretraining_figure bench.tables"
    ),
    "lab.pretraining": "corpus_filter transformer.evaluate transformer.train transformer.trainer transformer.unguided",
    "lab.turbulence.selecting": (
        "turbulence.closures turbulence.data turbulence.feedback turbulence.prepare turbulence.selection "
        "turbulence.tensors turbulence.tree_search"
    ),
    "lab.turbulence.solving": (
        "turbulence.checks turbulence.flow turbulence.foam_case turbulence.mesh turbulence.momentum "
        "turbulence.newton turbulence.openfoam turbulence.problem turbulence.response turbulence.solvers"
    ),
    "lab.turbulence.studying": (
        "turbulence.comparison turbulence.figures turbulence.measures turbulence.runs turbulence.store "
        "turbulence.study turbulence.study_figures turbulence.tables"
    ),
    "language": "convert own_operators parsing peers",
    "metric": "batch guidance signatures",
    "report": (
        "explanation>novelty_report fit_quality>quality novelty_report ranking>rank render report>reporting "
        "report_source>source resampling>bootstrap streaming verdicts"
    ),
    "report.intervals": (
        "constants fitted_rows>rows profile_ends profile_intervals>intervals profiles term_coefficients"
    ),
    "report.render.figures": (
        "render.figure render.fit_figure render.fit_svg render.notebook_figure render.style render.svg"
    ),
    "report.resolution": "domains rounding_errors turning_points",
    "search.contract": "search.engine search.options search.registry",
    "search.fit": "fitting search.final_fit search.fits search.forms search.loss_fit",
    "search.islands": "search.cores search.dask_islands search.island search.islands search.seeding",
    "search.loop": "search.collector search.front search.judge search.loop",
    "search.model": (
        "search.arguments search.checkpoint search.display search.finish search.preparation search.printing "
        "search.reading search.regressor search.storage search.verdicts"
    ),
    "search.problem": (
        "search.alike_inputs search.control search.dimensions search.loss search.natural_units search.outside "
        "search.template search.units"
    ),
    "search.propose": (
        "search.linearised search.partial_expressions search.power_law search.pursuit search.relatives "
        "search.reranking search.screening search.structure search.term_library search.wide_beam"
    ),
    "tables": (
        "compression file_chunks files formula_files parquet_tables>parquet table_columns>columns "
        "table_format>format wide_text"
    ),
    "ui": ("app demonstration>demo diagnosis>doctor matching>match table_regression>fit trajectory_regression>motion"),
    "ui.cli": (
        "cli>main cli_app>app cli_bench>bench cli_corpus>corpus cli_errors>errors cli_llm>llm "
        "cli_options>options cli_screen>screen cli_turbulence>turbulence"
    ),
}


def _moved() -> dict[str, str]:
    found = {}
    for folder, names in _NOW.items():
        for entry in names.split():
            old, _, name = entry.partition(">")
            found[old] = f"{folder}.{name or old.rpartition('.')[2]}".lstrip(".")
    return found


MOVED = _moved()
#: Old modules whose name a folder has now: the folder hands on what is asked of them.
_FOLDERS = {old: MOVED.pop(old) for old in ("report", "search.loop", "search.islands")}


def new_path(old: str) -> str | None:
    """Where a module, named without the package, is now; None where it did not move.

    Examples
    --------
    >>> new_path("search.regressor"), new_path("bench.paper"), new_path("errors")
    ('search.model.regressor', 'lab.bench.showing.paper', None)
    """
    head, tail = old, ""
    while head:
        if head in MOVED:
            return MOVED[head] + tail
        head, dot, last = head.rpartition(".")
        tail = f"{dot}{last}{tail}"
    return None


class _OldPaths(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE) or new_path(fullname.removeprefix(PACKAGE)) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = PACKAGE + str(new_path(old.removeprefix(PACKAGE)))
        try:
            sys.modules[old] = importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name != new:
                raise
            raise ModuleNotFoundError(f"No module named '{old}'", name=old) from None
        warnings.warn(f"'{old}' is now '{new}'.", DeprecationWarning, stacklevel=2)


def install() -> None:
    """Let old paths answer."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldPaths())


def forwarded(folder: str) -> Callable[[str], Any]:
    """``__getattr__`` of a folder that has the name of an old module."""

    def get(name: str) -> Any:
        module = importlib.import_module(PACKAGE + _FOLDERS[folder.removeprefix(PACKAGE)])
        if name.startswith("__") or not hasattr(module, name):
            raise AttributeError(f"module '{folder}' has no attribute '{name}'")
        warnings.warn(f"'{folder}.{name}' is now '{module.__name__}.{name}'.", DeprecationWarning, stacklevel=2)
        return getattr(module, name)

    return get
