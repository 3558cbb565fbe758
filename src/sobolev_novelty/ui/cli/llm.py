"""``sobolev llm``, and the options of ``sobolev fit`` that bring in a language model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import JsonOption, in_panel, json_text, listed, print_json
from sobolev_novelty.ui.cli.screen import echo

if TYPE_CHECKING:
    from sobolev_novelty.engines.igsr.talk.protocol import Proposer
    from sobolev_novelty.search.contract.engine import Engine, GuessSource

llm_app = typer.Typer(help="Language models that propose terms.", no_args_is_help=True)


_of_model = in_panel("Language model")


@dataclass(frozen=True, slots=True)
class ProposerOptions:
    """Who proposes terms: a language model, a recording of one, or nobody."""

    llm: Annotated[
        str | None,
        _of_model(help="Endpoint like OpenAI's, as http://127.0.0.1:8080/v1; key in SOBOLEV_LLM_KEY."),
    ] = None
    model: Annotated[str | None, _of_model(help="The model, as the endpoint calls it.")] = None
    llm_calls: Annotated[int | None, _of_model(help="Largest number of calls to the model.")] = None
    llm_tokens: Annotated[int | None, _of_model(help="Largest number of tokens, prompts and answers.")] = None
    transcript: Annotated[
        Path | None,
        _of_model(help="Record calls here, and answer from here what was asked before. Without --llm: only replay."),
    ] = None
    anonymous: Annotated[
        bool,
        _of_model("--anonymous", help="Do not show the names of the columns to the model."),
    ] = False

    def applied_to(self, engine: str) -> tuple[str | Engine[Any], GuessSource | None]:
        """The engine, which asks the model where it is igsr, and the model as a source of guesses for any other."""
        from sobolev_novelty.engines.igsr.engine import IGSR
        from sobolev_novelty.engines.igsr.ledger import Limits
        from sobolev_novelty.search.contract.engine import GuessSource

        proposer = self._proposer()
        if engine == "igsr":
            is_limited = (self.llm_calls, self.llm_tokens) != (None, None)
            limits = Limits(calls=self.llm_calls, tokens=self.llm_tokens) if is_limited else None
            return IGSR(proposer, limits=limits, names="anonymous" if self.anonymous else "given"), None
        if proposer is None and (self.llm_calls, self.llm_tokens, self.anonymous) != (None, None, False):
            raise ParameterError("'engine' must be igsr, or --llm given, for options of a language model.")
        if self.anonymous or self.llm_tokens is not None:
            raise ParameterError("'engine' must be igsr for --anonymous and --llm-tokens.")
        return engine, proposer if isinstance(proposer, GuessSource) else None

    def _proposer(self) -> Proposer | None:
        from sobolev_novelty.core.output import check_output
        from sobolev_novelty.engines.igsr.talk.chat import N_GUESS_CALLS, ChatProposer
        from sobolev_novelty.engines.igsr.talk.transcript import Transcript

        if self.llm is None and self.model is not None:
            raise ParameterError("'model' needs the address of an endpoint: --llm http://127.0.0.1:8080/v1.")
        if self.llm is not None and self.model is None:
            raise ParameterError("'model' is missing: give the name by which the endpoint knows the model.")
        chat = None
        if self.llm is not None and self.model is not None:
            chat = ChatProposer(self.llm, self.model, n_guess_calls=self.llm_calls or N_GUESS_CALLS)
        if self.transcript is None:
            return chat
        if chat is not None:
            check_output(self.transcript, argument="transcript")
        return Transcript(self.transcript, chat)


@llm_app.command()
def grammar(
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="Table whose columns are the variables.")
    ] = None,
    *,
    target: Annotated[str | None, typer.Option(help="Column of DATA that is not an input.")] = None,
    names: Annotated[str | None, typer.Option(help="Variables, separated by commas, in place of DATA.")] = None,
    operators: Annotated[str | None, typer.Option(help="Operators, separated by commas.")] = None,
    terms: Annotated[int, typer.Option(help="Lines of an answer.")] = 8,
    schema: Annotated[bool, typer.Option("--schema", help="A JSON schema in place of GBNF.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the grammar of admissible terms, for servers that take one (GBNF), or a JSON schema."""
    from sobolev_novelty.engines.igsr.grammar import gbnf, json_schema
    from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary
    from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS

    with one_line_errors(as_json):
        known = _variables(data, target, listed(names))
        allowed = tuple(listed(operators) or DEFAULT_OPERATORS)
        _check_operators(allowed)
        vocabulary = Vocabulary(known, allowed, ((0.0, 1.0),) * len(known))
        if as_json:
            print_json({"gbnf": gbnf(vocabulary, terms), "json_schema": json_schema(vocabulary, terms)})
        else:
            text = json_text(json_schema(vocabulary, terms)) + "\n" if schema else gbnf(vocabulary, terms)
            echo(text, nl=False)


def _variables(data: Path | None, target: str | None, names: list[str] | None) -> tuple[str, ...]:
    from sobolev_novelty.tables.files import read_table

    if (data is None) == (names is None):
        raise ParameterError("Give the variables: either DATA or --names.")
    columns = names if data is None else list(read_table(data).columns)
    assert columns is not None
    if target is not None and target not in columns:
        raise ParameterError(f"'target' must be one of {', '.join(columns)}. Got '{target}'.")
    found = tuple(name for name in columns if name != target)
    if not found:
        raise ParameterError("'names' must hold at least one variable.")
    return found


def _check_operators(operators: tuple[str, ...]) -> None:
    from sobolev_novelty.core.operators import OPERATORS

    unknown = [name for name in operators if name not in OPERATORS]
    if unknown:
        raise ParameterError(f"'operators' names unknown ones: {', '.join(unknown)}. Known: {', '.join(OPERATORS)}.")
