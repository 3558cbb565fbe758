"""Options that several verbs share, each declared once, in groups that a verb takes as one argument."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.ui.cli.screen import echo

if TYPE_CHECKING:
    from sobolev_novelty.tables.format import TableFormat


def in_panel(name: str) -> Callable[..., Any]:
    """``typer.Option`` for options that a help shows in a panel of their own."""
    return partial(typer.Option, rich_help_panel=name)


of_columns, _of_format = in_panel("Columns of DATA"), in_panel("How DATA is written")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress display.")]
_TABLE = "Table: .csv, .tsv, .txt (also .gz, .xz), .xlsx or .parquet; '-' for standard input."
TableArgument = Annotated[Path, typer.Argument(metavar="DATA", help=_TABLE)]
FeaturesOption = Annotated[
    str | None,
    of_columns(help="Columns that are inputs, separated by commas. Default: all numeric ones."),
]


def earlier_names(**now: str) -> dict[str, Callable[[str], str]]:
    """Settings of a command whose options once had other names: these still work, and no help shows them."""
    names = {before.replace("_", "-"): option for before, option in now.items()}
    return {"token_normalize_func": lambda name: names.get(name, name)}


#: Of -o, click keeps the dash.
OLD_NAMES = earlier_names(output="out", o="-out", workers="jobs")


def json_text(data: Any) -> str:
    """A result as JSON."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def print_json(data: Any) -> None:
    """What ``--json`` prints."""
    echo(json_text(data))


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How a text table is written."""

    separator: Annotated[
        str | None,
        _of_format(help="What separates the columns: one character, tab or space. Default: guessed."),
    ] = None
    decimal: Annotated[str | None, _of_format(help="Decimal mark: . or ,. Default: guessed.")] = None
    encoding: Annotated[str | None, _of_format(help="Encoding, such as latin-1. Default: guessed.")] = None
    no_header: Annotated[bool, _of_format("--no-header", help="The first line is data; columns are x0, x1, …")] = False
    max_megabytes: Annotated[
        int,
        _of_format(help="A compressed table that holds more than this, and 30 times its size, is refused."),
    ] = 128
    comment: Annotated[
        str | None, _of_format(help="How lines begin that are not part of the table; '' for none. Default: guessed.")
    ] = None
    skip_rows: Annotated[
        int | None, _of_format(help="Lines above the names, comments not counted. Default: guessed.")
    ] = None
    sheet: Annotated[str | None, _of_format(help="Sheet of a workbook. Default: the first that is not empty.")] = None

    def table_format(self) -> TableFormat:
        """These options as the library's :class:`TableFormat`."""
        from sobolev_novelty.tables.format import TableFormat

        return TableFormat(
            self.separator, self.decimal, self.encoding, not self.no_header, self.max_megabytes, self.comment,
            self.skip_rows, self.sheet,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EquationOptions:
    """An equation, a table, and how one is written in the columns of the other."""

    equation: Annotated[
        str, typer.Argument(metavar="EQUATION", help="Formula as text, '-' for standard input; left out with --file.")
    ]
    data: Annotated[Path | None, typer.Argument(metavar="DATA", help=_TABLE)] = None
    file: Annotated[
        str | None, typer.Option("--file", help="Read the equation from this file, '-' for standard input.")
    ] = None
    target: Annotated[str | None, of_columns(help="Column that the equation predicts: not an input.")] = None
    features: FeaturesOption = None
    variables: Annotated[
        str, typer.Option(help="How the equation writes inputs: auto, names, x0 (from zero) or x1 (from one).")
    ] = "auto"
    row: Annotated[
        int | None,
        typer.Option(help="Where --file is a hall of fame of PySR: which equation, from 0. Default: the best."),
    ] = None
    dialect: Annotated[str, typer.Option(help="plain; gplearn or bingo for their protected operators; pysr.")] = "plain"

    @property
    def path(self) -> Path:
        """Where the table is."""
        if self.file is not None and self.data is not None:
            raise ParameterError("Give the equation as an argument or with --file, not both.")
        path = self.data if self.file is None else Path(self.equation)
        if path is None:
            raise ParameterError("DATA is missing: give EQUATION and DATA, or DATA and --file.")
        if str(path) == "-" and "-" in (self.file, self.equation if self.file is None else ""):
            raise ParameterError("The equation and the table cannot both come from standard input.")
        return path

    def text(self) -> str:
        """The equation as it was written; reads it where it is in a file or comes from standard input."""
        if self.file is not None:
            return _text_of(self.file)
        if self.equation == "-":
            return _text_of("-")
        _refuse_a_file(self.equation)
        return self.equation

    def read(self) -> tuple[str, dict[str, Any]]:
        """The equation, and arguments of :func:`sobolev_novelty.ui.match.match_equation`.

        Of a hall of fame of PySR it is the equation that PySR would choose, or the one of ``--row``.
        """
        from sobolev_novelty.language.peers.pysr import equation_of_hall_of_fame, is_hall_of_fame

        text = self.text()
        if not is_hall_of_fame(text):
            if self.row is not None:
                raise ParameterError(f"'row' needs a hall of fame of PySR with --file. Got {self.row}.")
            return text, self.matching()
        chosen, row, n_rows = equation_of_hall_of_fame(text, self.row)
        why = "PySR's own choice; --row takes another" if self.row is None else "as asked for"
        echo(f"Note: equation {row} (of 0 to {n_rows - 1}) of the hall of fame is taken, {why}: {chosen}", err=True)
        return chosen, self.matching() | ({"dialect": "pysr"} if self.dialect == "plain" else {})

    def matching(self) -> dict[str, Any]:
        """Arguments of :func:`sobolev_novelty.ui.match.match_equation`."""
        return {
            "target": self.target, "features": listed(self.features), "variables": self.variables,
            "dialect": self.dialect,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How novelty is measured."""

    order: Annotated[int, typer.Option(help="Highest derivative that is compared: 0, 1 or 2.")] = 1
    tau: Annotated[float | None, typer.Option(help="Threshold of the verdict. Default: 1/√10.")] = None

    def arguments(self) -> dict[str, Any]:
        """These options as keyword arguments of the library's functions."""
        return {"order": self.order} | ({} if self.tau is None else {"tau": self.tau})


def with_groups(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler as typer reads it: every argument that is a group of options becomes the options of the group."""
    hints = get_type_hints(handler, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(handler).parameters.items():
        members = inspect.signature(groups[name]).parameters if name in groups else {name: parameter}
        known = get_type_hints(groups[name], include_extras=True) if name in groups else hints
        parameters |= {
            member: p.replace(annotation=known[member], kind=inspect.Parameter.KEYWORD_ONLY)
            for member, p in members.items()
        }

    @wraps(handler)
    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{member.name: given.pop(member.name) for member in fields(group)})
        handler(**given)

    command.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return command


def listed(names: str | None) -> list[str] | None:
    """Names separated by commas; one that holds a comma stands in backticks, as in an equation.

    >>> listed("mass, `v, in m/s`")
    ['mass', 'v, in m/s']
    """
    if names is None:
        return None
    found = re.findall(r"`([^`]+)`|([^,`]+)", names)
    return [name for quoted, plain in found if (name := quoted or plain.strip())]


def table_source(data: Path) -> Path | IO[bytes]:
    """A file, or standard input for ``-``."""
    return sys.stdin.buffer if str(data) == "-" else data


def _refuse_a_file(equation: str) -> None:
    """Refuse the name of a file where a formula is expected: as a formula it would fail at its full stop."""
    try:
        is_file = Path(equation).is_file()
    except (OSError, ValueError):  # a formula that no file could be called by
        return
    if is_file:
        raise ParameterError(
            f"EQUATION is a formula, and '{equation}' is a file. Read a formula from it with --file; the equation of a "
            "model that 'sobolev fit' wrote is shown by 'sobolev export --model'."
        )


def _text_of(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"'{file}' is not text: {error.reason}. Save the equation as UTF-8.") from error
    if not text.strip():
        raise DataError(
            f"{'Standard input' if file == '-' else repr(file)} holds no equation. Write one formula there."
        )
    return text.strip()
