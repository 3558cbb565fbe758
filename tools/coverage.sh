#!/bin/sh
# Line and branch coverage of the C code: the compiled kernel and the corpus unit, built with gcc's counters and failing
# allocations, run by their tests. Every branch counts, those of refused arguments and of missing memory too. Prints a table, and
# fails below 90 % of the branches.
#   tools/coverage.sh [more test files or options of pytest]
# The package is copied, so that the working tree keeps its own build. Needs meson, ninja and gcovr (PyPI).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v gcovr >/dev/null || { echo "gcovr is not installed: python -m pip install gcovr"; exit 1; }
native=src/sobolev_novelty/kernels/native
corpus=src/sobolev_novelty/engines/transformer/corpus/native

# A branch counts once, not once for every place it is inlined into: no optimisation, also where the build asks for it.
# The counters are atomic, so that threads count too.
printf '#!/bin/sh\nexec %s "$@" -O0\n' "${CC:-gcc}" >"$work/cc"
chmod +x "$work/cc"
CC="$work/cc" meson setup "$work/build" "$root" --buildtype=debug -Db_coverage=true \
  "-Dc_args=-DSOBOLEV_FAULTS -fprofile-update=atomic" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
meson compile -C "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir "$work/src"
cp -r "$root/src/sobolev_novelty" "$work/src/"
rm -f "$work"/src/sobolev_novelty/kernels/_native* "$work"/src/sobolev_novelty/engines/transformer/corpus/_corpus*
cp "$work/build/$native"/_native*.so "$work/src/sobolev_novelty/kernels/"
cp "$work/build/$corpus"/_corpus*.so "$work/src/sobolev_novelty/engines/transformer/corpus/"

cd "$root"
export PYTHONPATH="$work/src${PYTHONPATH:+:$PYTHONPATH}"
python -c "
from sobolev_novelty.kernels import _native
assert _native.__file__.startswith('$work'), _native.__file__"
# Each instruction set is a build of the tile loops, and each of them counts.
for set in baseline avx2 avx512; do
  SOBOLEV_SIMD=$set python -m pytest -q -p no:cacheprovider tests/kernels/test_{kernels,kernel_novelties,kernel_pursuit}.py
done
python -m pytest -q -p no:cacheprovider -m 'slow or not slow' tests/kernels/test_kernel_{arguments,faults,interrupts}.py tests/metric/test_batch.py \
  tests/search/fit/test_fitting.py tests/kernels/test_evaluation.py tests/hostile/test_extremes.py \
  tests/search/propose/test_search_pursuit.py tests/lab/pretraining/test_corpus_filter.py \
  tests/engines/transformer/test_transformer_{corpus,skeletons}.py "$@"
gcovr --root "$root" --filter "$native/" --filter "$corpus/" --gcov-executable "${GCOV:-gcov}" "$work/build" \
  --json-summary "$work/summary.json" ${COVERAGE_JSON:+--json "$COVERAGE_JSON"}
python - "$work/summary.json" <<'END'
import json, sys
found = json.load(open(sys.argv[1]))
print("| file | lines | branches |\n| --- | ---: | ---: |")
for file in [*found["files"], {**found, "filename": "all"}]:
    name = "/".join(file["filename"].split("/")[-3:])
    shares = (f"{file[f'{kind}_covered']} of {file[f'{kind}_total']} ({file[f'{kind}_percent']:.1f} %)" for kind in ("line", "branch"))
    print("|", name, "|", " | ".join(shares), "|")
sys.exit(found["branch_percent"] < 90.0)
END
