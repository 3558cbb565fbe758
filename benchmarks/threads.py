"""What more threads bring: ``python -m benchmarks.threads``. Needs NumPy only, so it runs wherever cores are idle."""

from __future__ import annotations

import json
import os

from benchmarks.fits import threads
from benchmarks.scaling import threads as curve

if __name__ == "__main__":
    found = {
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "measures": [m.as_dict() for m in threads(5)],
        "curve": curve(5),
    }
    print(json.dumps(found, indent=1, ensure_ascii=False))
