"""Training: exact resume, schedule, exports, weights in files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from needs_torch import corpus_unit, one_thread, tiny, torch  # noqa: F401
from places import ROOT
from sobolev_novelty.engines.transformer.checkpoint import load_model, load_state, read_weights, save_state
from sobolev_novelty.engines.transformer.safetensors import read_shards, read_tensors, write_shards, write_tensors
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.pretraining.train import Limits, TrainingError, main, run, train
from sobolev_novelty.lab.pretraining.trainer import Machine, Schedule, Trainer

pytestmark = pytest.mark.torch
CPU = Machine("cpu", n_threads=2)


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def losses(trainer: Trainer, n_steps: int) -> list[float]:
    """Loss of the next steps, to the last bit."""
    found = []
    for _ in range(n_steps):
        batch = trainer.corpus.batch(trainer.step, trainer.settings.training.batch)
        found.append(trainer.train_step(CPU.prepare(batch))[0].item())
    return found


@pytest.mark.usefixtures("corpus_unit")
def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path) -> None:
    through = train(tiny(), CPU, Limits(tmp_path / "through", log_steps=1))
    # The first half ends because its time is up; what the second logs must be what an uninterrupted run logs.
    stopped = Trainer(tiny(), CPU)
    losses(stopped, 5)
    (tmp_path / "halves").mkdir()
    save_state(tmp_path / "halves", stopped.state())
    resumed = train(tiny(), CPU, Limits(tmp_path / "halves", log_steps=1))
    logged = {row["step"]: row["loss"] for row in lines(tmp_path / "through", "train")}
    again = {row["step"]: row["loss"] for row in lines(tmp_path / "halves", "train")}
    assert sorted(logged) == list(range(1, 13)) and sorted(again) == list(range(6, 13))
    assert all(again[step] == logged[step] for step in again)
    for name, tensor in through.averaged.state_dict().items():
        assert torch.equal(tensor, resumed.averaged.state_dict()[name]), name
    np.testing.assert_array_equal(through.counts, resumed.counts)
    assert through.counts[0] == 48


@pytest.mark.usefixtures("corpus_unit")
def test_the_loss_falls(tmp_path: Path) -> None:
    train(tiny(samples=640, batch=16, learning_rate=5e-3), CPU, Limits(tmp_path, log_steps=8))
    rows = lines(tmp_path, "train")
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.5
    check = lines(tmp_path, "checkpoint")[-1]
    assert check["funnel"]["accepted"] == 640
    assert set(check["validation"]) == {"random", "filtered"}
    assert lines(tmp_path, "end")[0] == {**lines(tmp_path, "end")[0], "step": 40, "samples": 640, "is_finished": True}


@pytest.mark.usefixtures("corpus_unit")
def test_a_call_ends_when_its_time_is_up_and_the_next_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sobolev_novelty.lab.pretraining.train.RESERVE", 0.0)
    settings = tiny(samples=4_000_000)
    train(settings, CPU, Limits(tmp_path, seconds=3.0, checkpoint_seconds=0.3))
    (end,) = lines(tmp_path, "end")
    assert not end["is_finished"] and end["step"] > 0
    assert len(lines(tmp_path, "checkpoint")) >= 2
    state = load_state(tmp_path)
    assert state is not None and state["step"] == end["step"]
    train(settings, CPU, Limits(tmp_path, finish_samples=20, weights=tmp_path / "weights"))
    assert lines(tmp_path, "end")[-1]["step"] == end["step"] + 5
    assert lines(tmp_path, "end")[-1]["is_finished"]


@pytest.mark.usefixtures("corpus_unit")
def test_the_last_minutes_cool_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sobolev_novelty.lab.pretraining.train.RESERVE", 0.0)
    limits = Limits(
        tmp_path, seconds=4.0, cooldown_seconds=2.0, export=tmp_path / "export", weights=tmp_path / "weights"
    )
    train(tiny(samples=4_000_000), CPU, limits)
    (cooldown,) = lines(tmp_path, "cooldown")
    assert lines(tmp_path, "end")[0]["step"] > cooldown["step"]
    # The export is the last state of the plateau, the weights are those of the end.
    assert read_weights(tmp_path / "export").progress["step"] == cooldown["step"]
    assert read_weights(tmp_path / "weights").progress["step"] == lines(tmp_path, "end")[0]["step"]


@pytest.mark.usefixtures("corpus_unit")
def test_an_export_carries_weights_and_place_to_another_machine(tmp_path: Path) -> None:
    first = train(tiny(cooldown_share=0.0), CPU, Limits(tmp_path / "first", export=tmp_path / "export"))
    stored = read_weights(tmp_path / "export")
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, stored.tensors[name]), name
    longer = tiny(samples=96)
    second = train(longer, CPU, Limits(tmp_path / "second", log_steps=1), start_from=tmp_path / "export")
    assert [row["step"] for row in lines(tmp_path / "second", "train")] == list(range(13, 25))
    assert second.schedule.warmup_from == 12 and second.counts[0] == 96
    assert lines(tmp_path / "second", "train")[0]["learning_rate"] == pytest.approx(longer.training.learning_rate / 3)
    assert (tmp_path / "export" / "log.jsonl").is_file()


@pytest.mark.usefixtures("corpus_unit")
def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    limits = Limits(tmp_path / "run", export=tmp_path / "export", weights=tmp_path / "weights")
    train(tiny(), CPU, limits)
    with pytest.raises(ParameterError, match="belongs to other settings"):
        train(tiny(batch=8), CPU, limits)
    with pytest.raises(ParameterError, match="names weights for use"):
        train(tiny(), CPU, Limits(tmp_path / "new"), start_from=tmp_path / "weights")
    with pytest.raises(ParameterError, match="counts steps of 4 samples. Got 8"):
        train(tiny(batch=8), CPU, Limits(tmp_path / "new"), start_from=tmp_path / "export")
    with pytest.raises(ParameterError, match="has seen 36 samples; the plateau of these settings ends at 0"):
        train(tiny(cooldown_share=1.0), CPU, Limits(tmp_path / "new"), start_from=tmp_path / "export")
    other = RunSettings.from_dict({"model": {"width": 32, "heads": 2}, "training": {"validation": 4}})
    with pytest.raises(ParameterError, match="another network or corpus"):
        train(other, CPU, Limits(tmp_path / "newer"), start_from=tmp_path / "export")


@pytest.mark.usefixtures("corpus_unit")
def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path: Path) -> None:
    trainer = Trainer(tiny(), CPU)
    with torch.no_grad():
        trainer.model.embed_tokens.weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match="The loss is nan at step 1"):
        run(trainer, Limits(tmp_path, log_steps=1))


@pytest.mark.usefixtures("corpus_unit")
def test_the_matched_arm_learns_how_to_thin_once(tmp_path: Path) -> None:
    values = tiny(pilot=500, cooldown_share=0.0).to_dict()
    values["corpus"]["arm"] = "matched"
    settings = RunSettings.from_dict(values)
    first = train(settings, CPU, Limits(tmp_path / "first", export=tmp_path / "export"))
    assert len(first.settings.corpus.keep) == 650
    again = train(settings, CPU, Limits(tmp_path / "second"), start_from=tmp_path / "export")
    assert again.settings.corpus == first.settings.corpus


def test_the_learning_rate_warms_up_stays_and_cools_down() -> None:
    schedule = Schedule(1.0, warmup_from=10, warmup_steps=4, cooldown_from=20, cooldown_steps=10)
    assert [schedule.rate(step) for step in (10, 11, 13, 14, 19)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    falling = [schedule.rate(step) for step in range(20, 31)]
    assert falling[0] == 1.0 and falling[-1] == pytest.approx(0.02)
    np.testing.assert_allclose(np.diff(falling), -0.098)
    assert schedule.end == 30


@pytest.mark.usefixtures("corpus_unit")
def test_weights_for_use_are_the_running_mean_in_half_precision(tmp_path: Path) -> None:
    trainer = train(tiny(), CPU, Limits(tmp_path, weights=tmp_path / "weights"))
    model = load_model(tmp_path / "weights")
    for name, tensor in trainer.averaged.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor.bfloat16().float()), name
    config = json.loads((tmp_path / "weights" / "config.json").read_text())
    assert config["dtype"] == "bfloat16" and config["settings"]["corpus"]["law"] == "lean"
    assert RunSettings.from_dict(config["settings"]) == trainer.settings


def test_files_have_the_safetensors_format(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5, -2.0], dtype=torch.bfloat16)}
    checksum = write_tensors(tmp_path / "f.safetensors", tensors)
    content = (tmp_path / "f.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    assert header["a"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    assert header["b"] == {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]}
    np.testing.assert_array_equal(np.frombuffer(content[8 + size : 8 + size + 24], "<f4"), np.arange(6.0))
    assert content[8 + size + 24 :] == bytes([0xC0, 0x3F, 0x00, 0xC0])
    found = read_tensors(tmp_path / "f.safetensors", sha256=checksum)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_shards_stay_below_their_limit_and_read_back(tmp_path: Path) -> None:
    tensors = {f"t{k}": torch.randn(10, 10) for k in range(7)}
    files = write_shards(tmp_path, "x", tensors, max_bytes=1000)
    assert list(files) == [f"x-{k:02d}-of-04.safetensors" for k in range(1, 5)]
    assert all((tmp_path / name).stat().st_size < 1300 for name in files)
    found = read_shards(tmp_path, files)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("damage", ["flip", "cut", "header", "offsets", "not a file of this kind"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "f.safetensors"
    checksum = write_tensors(path, {"a": torch.zeros(4)})
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
    elif damage == "cut":
        content = content[:-3]
    elif damage == "header":
        content[:8] = struct.pack("<Q", 1 << 40)
    elif damage == "offsets":
        content = bytearray(content.replace(b"[0,16]", b"[0,99]"))
    else:
        content = bytearray(b"hello")
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        read_tensors(path, sha256=checksum)
    if damage != "flip":
        with pytest.raises(DataError, match="not a safetensors file"):
            read_tensors(path)
    with pytest.raises(DataError, match="outside its folder"):
        read_shards(tmp_path, {"../f.safetensors": checksum})


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no weights"):
        read_weights(tmp_path)
    (tmp_path / "config.json").write_text('{"format": 9, "kind": "export", "files": {}, "progress": {}}')
    with pytest.raises(DataError, match="another version"):
        read_weights(tmp_path)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("pretrain_*.toml")), ids=lambda path: path.stem)
def test_every_experiment_can_be_read_and_written(path: Path) -> None:
    settings = RunSettings.from_toml(path, ["training.batch=1024", 'corpus.arm="filtered"'])
    assert settings.training.batch == 1024 and settings.corpus.arm == "filtered"
    assert RunSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_the_arms_of_the_paper_differ_in_the_arm_alone() -> None:
    arms = [RunSettings.from_toml(ROOT / "experiments" / f"pretrain_paper_{arm}.toml").to_dict() for arm in
            ("random", "filtered", "matched")]  # fmt: skip
    assert [arm["corpus"].pop("arm") for arm in arms] == ["random", "filtered", "matched"]
    assert arms[0] == arms[1] == arms[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.size=3", "unknown key\\(s\\) size"),
        ("data.size=3", "Unknown table\\(s\\): data"),
        ("batch=3", "names a table and a key"),
        ("batch", "is not TOML"),
        ("model.length=10", "'length' must be at least 22"),
        ("training.samples=1", "'samples' must be at least"),
    ],
)
def test_settings_that_cannot_be_used_say_why(change: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RunSettings.from_toml(ROOT / "experiments" / "pretrain_tiny.toml", [change])


@pytest.mark.slow
@pytest.mark.usefixtures("corpus_unit")
def test_the_tiny_preset_trains_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(ROOT / "experiments" / "pretrain_tiny.toml"), "--out", str(tmp_path), "--device", "cpu", "--threads", "1",
          "--weights", str(tmp_path / "weights")])  # fmt: skip
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed[-1]["kind"] == "end" and printed[-1]["is_finished"]
    final = lines(tmp_path, "checkpoint")[-1]["validation"]["random"]
    assert final["tokens_right"] > 0.5
    assert load_model(tmp_path / "weights").settings.width == 32
