#!/bin/sh
# The pretraining experiment again (docs/paper-pretraining.md), on a machine with a GPU, torch, NumPy, SciPy and a C compiler:
#
#     tools/pretrain_again.sh OUT SECONDS JOBS
#
# trains nine networks abreast for so many seconds, keeps what they write for the 133 tasks (OUT/ARM_SEED/*.jsonl.gz) and
# their weights, and then fits and scores it with so many processes (OUT/course). Ends with the file OUT/DONE.
set -e
out=$1 seconds=$2 jobs=$3
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
PYTHONPATH=$root/src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
export PYTHONPATH PYTHONUNBUFFERED OMP_NUM_THREADS
mkdir -p "$out/course"
python3 -m sobolev_novelty.engines.transformer.corpus.build
python3 -c "from pathlib import Path
from sobolev_novelty.lab.bench.showing.pretraining import write_bags
print(write_bags(Path('$out/bags.npz')))"
python3 -m sobolev_novelty.lab.pretraining.abreast experiments/pretrain_paper_random.toml \
    experiments/pretrain_paper_matched.toml experiments/pretrain_paper_filtered.toml \
    --seeds 1 2 3 --out "$out/runs" --bags "$out/bags.npz" --seconds "$seconds" $PRETRAIN_OPTIONS
touch "$out/TRAINED"
cat > "$out/follow.py" <<'END'
import sys
from pathlib import Path
from sobolev_novelty.lab.bench.showing.pretraining_course import follow
if __name__ == "__main__":
    out, jobs = Path(sys.argv[1]), int(sys.argv[2])
    for run in sorted((out / "runs").iterdir()):
        follow(sorted(run.glob("*.jsonl.gz")), out / "course" / f"{run.name}.json", n_jobs=jobs)
        print("read", run.name)
END
python3 "$out/follow.py" "$out" "$jobs"
gzip -9n "$out"/course/*.json
touch "$out/DONE"
