"""``sobolev app``: reports, pruning and searches on a local page."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.ui.cli.errors import one_line_errors
from sobolev_novelty.ui.cli.options import FormatOptions, JsonOption, print_json, table_source, with_groups
from sobolev_novelty.ui.cli.screen import echo


@with_groups
def app_command(
    written: FormatOptions,
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="Table to begin with.")] = None,
    *,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 for any that is free.")] = 0,
    limit: Annotated[int, typer.Option(help="Largest file that the page takes, in megabytes.")] = 100,
    browser: Annotated[bool, typer.Option(help="Whether to open the page in a browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Open a local page for reports, pruning and searches; nothing leaves this computer. Ctrl-C ends it."""
    from sobolev_novelty.tables.files import read_table
    from sobolev_novelty.ui.app.server import AppServer
    from sobolev_novelty.ui.app.workspace import Workspace

    with one_line_errors(as_json):
        if limit < 1:
            raise ParameterError(f"'limit' must be at least 1. Got {limit}.")
        workspace = Workspace(limit=limit * 2**20)
        if data is not None:
            workspace.take_table(read_table(table_source(data), written.table_format()))
        server = AppServer(workspace, port)
    try:
        if as_json:
            print_json({"url": server.gate.address, "port": server.server_port})
        else:
            echo(f"The page is at\n\n  {server.gate.address}\n\nIt works on this computer only. Ctrl-C ends it.")
        if browser:
            # In a thread: a browser of the terminal waits for the page, and we would wait for the browser.
            address = server.gate.ticket_address()
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        echo("\nThe page is closed.", err=True)
    finally:
        server.close()
