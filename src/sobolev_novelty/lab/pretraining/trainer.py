"""One training run: the network, its optimizer, its running mean, its schedule, and where it stands."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sobolev_novelty.engines.transformer.checkpoint import Stored
from sobolev_novelty.engines.transformer.corpus import VERDICTS, Batch, Corpus
from sobolev_novelty.engines.transformer.model import Model
from sobolev_novelty.engines.transformer.settings import RunSettings
from sobolev_novelty.engines.transformer.tokenizer import N_SKELETON, PAD
from sobolev_novelty.errors import ParameterError

#: The learning rate ends at this share of the plateau.
FINAL_SHARE = 0.02
#: Formulas per pass of the validation, which keeps no gradients.
VALIDATION_ROWS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A batch as tensors: X (B, 200, 10), y (B, 200), tokens (B, L), and what became of the candidates it took."""

    X: Tensor
    y: Tensor
    tokens: Tensor
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Warm-up, plateau, cool-down: the learning rate is a function of the step.

    ``cooldown_from``, ``cooldown_steps``: the run ends after the cool-down.
    """

    peak: float
    warmup_from: int  # step at which the warm-up begins: 0, or the step of the export from which the run started
    warmup_steps: int
    cooldown_from: int
    cooldown_steps: int

    @property
    def end(self) -> int:
        """The step at which the run is finished."""
        return self.cooldown_from + self.cooldown_steps

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = min(1.0, (step - self.warmup_from + 1) / max(self.warmup_steps, 1))
        left = (self.end - step) / max(self.cooldown_steps, 1)
        cool = 1.0 if step < self.cooldown_from else FINAL_SHARE + (1.0 - FINAL_SHARE) * max(0.0, left)
        return self.peak * warm * cool


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and how the steps run."""

    device: str
    n_threads: int
    compile_mode: str = "none"

    def prepare(self, batch: Batch) -> Prepared:
        """Tensors in memory from which the device copies by itself; runs in a data thread."""
        tensors = [torch.from_numpy(array) for array in (batch.X, batch.y, batch.tokens)]
        if self.device == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        X, y, tokens = tensors
        return Prepared(X, y, tokens, batch.counts)

    def load(self, prepared: Prepared) -> tuple[Tensor, Tensor, Tensor]:
        """The batch on the device."""
        tensors = (prepared.X, prepared.y, prepared.tokens)
        X, y, tokens = (tensor.to(self.device, non_blocking=True) for tensor in tensors)
        return X, y, tokens

    @property
    def records(self) -> bool:
        """Whether whole steps are recorded and replayed."""
        return self.compile_mode == "graph"

    def precision(self) -> torch.autocast:
        """bfloat16 on a GPU; most CPUs emulate it, slower than float32."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda")

    def compiled(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The function as this machine runs it."""
        if self.compile_mode == "none":
            return function
        mode = None if self.compile_mode in ("default", "graph") else self.compile_mode
        compiled: Callable[..., Tensor] = torch.compile(function, mode=mode)
        return compiled


class Recording:
    """Steps of one shape, recorded as a CUDA graph and replayed.

    A step is some eleven hundred launches; replayed they are one, so that neither the interpreter nor the data threads
    that share its lock keep the device waiting.
    """

    #: Steps before the recording: they compile, and make what the optimizer keeps.
    N_FIRST = 3

    def __init__(self, update: Callable[..., tuple[Tensor, Tensor]]) -> None:
        self._update = update
        self._n_calls = 0
        self._inputs: list[Tensor] = []
        self._graph: torch.cuda.CUDAGraph | None = None
        self._results: tuple[Tensor, Tensor] | None = None
        self._stream = torch.cuda.Stream()

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """One step on a batch in pinned memory; the next call overwrites what it returns."""
        if not self._inputs:
            self._inputs = [torch.empty_like(tensor, device="cuda") for tensor in tensors]
        for place, tensor in zip(self._inputs, tensors, strict=True):
            place.copy_(tensor, non_blocking=True)
        self._n_calls += 1
        if self._n_calls <= self.N_FIRST:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                results = self._update(*self._inputs)
            torch.cuda.current_stream().wait_stream(self._stream)
            return results
        if self._graph is None or self._results is None:
            self._graph = torch.cuda.CUDAGraph()
            # Data threads take pinned memory meanwhile.
            with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
                self._results = self._update(*self._inputs)
        self._graph.replay()
        return self._results


class Trainer:
    """One run: the network, its optimizer, its running mean, and where it stands."""

    def __init__(self, settings: RunSettings, machine: Machine) -> None:
        training = settings.training
        self.settings, self.machine = settings, machine
        self.model = Model(settings.model, seed=training.seed).to(machine.device)
        self.averaged = copy.deepcopy(self.model).requires_grad_(False)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            # A recorded step reads its learning rate on the device.
            lr=torch.tensor(training.learning_rate, device=machine.device) if machine.records else 0.0,
            betas=(training.beta1, training.beta2),
            fused=machine.device == "cuda",
            capturable=machine.records,
        )
        cooldown = round(training.cooldown_share * training.steps)
        self.schedule = Schedule(training.learning_rate, 0, training.warmup_steps, training.steps - cooldown, cooldown)
        self.step = 0
        self.best_nats = math.inf  # of the checkpoints of this call
        self.counts = np.zeros(len(VERDICTS), dtype=np.int64)
        self.corpus = Corpus(settings.corpus, settings.model.with_floats)
        self._loss = machine.compiled(self.model.loss)
        self._parameters = list(self.model.parameters())
        self._averages = list(self.averaged.parameters())
        self._replay = Recording(self._update) if machine.records else None

    @property
    def progress(self) -> dict[str, Any]:
        """Where the run stands, for a config.json."""
        return {
            "step": self.step,
            "samples": self.step * self.settings.training.batch,
            "schedule": dataclasses.asdict(self.schedule),
            "funnel": dict(zip(VERDICTS, self.counts.tolist(), strict=True)),
        }

    def train_step(self, prepared: Prepared) -> tuple[Tensor, Tensor]:
        """One update; returns loss and gradient norm, still on the device."""
        training = self.settings.training
        self._set_rate(self.schedule.rate(self.step))
        if self.machine.compile_mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        if self._replay is not None:
            loss, norm = self._replay(prepared.X, prepared.y, prepared.tokens)
        else:
            loss, norm = self._update(*self.machine.load(prepared))
        # Early means forget fast: the first weights of a run are no average of anything.
        k = self.step - self.schedule.warmup_from
        decay = min(training.ema_decay, (1.0 + k) / (10.0 + k))
        with torch.no_grad():
            torch._foreach_lerp_(self._averages, self._parameters, 1.0 - decay)
        self.counts += prepared.counts
        self.step += 1
        return loss.clone(), norm.clone()

    def _update(self, X: Tensor, y: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients and a step of the optimizer; asks the device for nothing, so that it can be recorded."""
        with self.machine.precision():
            loss = self._loss(X, y, tokens.long())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.settings.training.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach(), norm.detach()

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if self.machine.records:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def cool_down(self, steps: int) -> None:
        """Begin the cool-down now; the run ends after ``steps`` more."""
        self.schedule = dataclasses.replace(self.schedule, cooldown_from=self.step, cooldown_steps=max(1, steps))

    @property
    def is_cooling(self) -> bool:
        """Whether the cool-down has begun."""
        return self.step > self.schedule.cooldown_from

    def state(self) -> dict[str, Any]:
        """Everything an exact resume needs."""
        return {
            "model": self.model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "schedule": dataclasses.asdict(self.schedule),
            "counts": torch.from_numpy(self.counts.copy()),
            "settings": json.dumps(self.settings.to_dict()),
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where the state was taken."""
        if json.loads(state["settings"]) != json.loads(json.dumps(self.settings.to_dict())):
            raise ParameterError("The state in '--out' belongs to other settings. Give another folder.")
        self.model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        for group in self.optimizer.param_groups:
            group["capturable"] = self.machine.records
            if self.machine.records:
                group["lr"] = torch.as_tensor(group["lr"], device=self.machine.device).clone()
        self.step, self.schedule = int(state["step"]), Schedule(**state["schedule"])
        self.counts = state["counts"].numpy().copy()
        torch.set_rng_state(state["random"])

    def start_from(self, stored: Stored) -> None:
        """Take over weights, step and funnel of an export; moments and running mean begin anew, with a warm-up."""
        if stored.kind != "export":
            raise ParameterError("'--start-from' names weights for use. Give a folder that '--export' wrote.")
        if stored.settings.model != self.settings.model or stored.settings.corpus != self.settings.corpus:
            raise ParameterError("The export in '--start-from' has another network or corpus than these settings.")
        step, batch = int(stored.progress["step"]), self.settings.training.batch
        if stored.settings.training.batch != batch:
            raise ParameterError(f"The export counts steps of {stored.settings.training.batch} samples. Got {batch}.")
        if step > self.schedule.cooldown_from:
            raise ParameterError(
                f"The export has seen {step * batch} samples; the plateau of these settings ends at "
                f"{self.schedule.cooldown_from * batch}. Raise 'training.samples'."
            )
        self.model.load_state_dict(stored.tensors)
        self.averaged.load_state_dict(stored.tensors)
        self.step = step
        funnel = stored.progress["funnel"]
        self.counts = np.array([funnel.get(verdict, 0) for verdict in VERDICTS], dtype=np.int64)
        self.schedule = dataclasses.replace(self.schedule, warmup_from=self.step)

    @torch.no_grad()
    def validate(self, prepared: Prepared) -> dict[str, float]:
        """The running mean on formulas it was not trained on.

        Returns nats per token, and the shares of tokens, of tokens that are not digits, and of whole formulas that are
        the most likely ones given what is before them.
        """
        X, y, tokens = self.machine.load(prepared)
        tokens = tokens.long()
        nats, right, structure_right, whole = (torch.zeros((), device=X.device) for _ in range(4))
        for start in range(0, len(X), VALIDATION_ROWS):
            rows = slice(start, start + VALIDATION_ROWS)
            with self.machine.precision():
                logits = self.averaged(X[rows], y[rows], tokens[rows, :-1]).float()  # (B, L - 1, V)
            goal = tokens[rows, 1:]
            nats += functional.cross_entropy(logits.flatten(0, 1), goal.flatten(), ignore_index=PAD, reduction="sum")
            hit = logits.argmax(dim=-1) == goal
            right += (hit & (goal != PAD)).sum()
            structure_right += (hit & (goal != PAD) & (goal < N_SKELETON)).sum()
            whole += (hit | (goal == PAD)).all(dim=1).sum()
        goal = tokens[:, 1:]
        n_tokens, n_structure = int((goal != PAD).sum()), int(((goal != PAD) & (goal < N_SKELETON)).sum())
        return {
            "nats_per_token": float(nats) / n_tokens,
            "tokens_right": float(right) / n_tokens,
            "structure_right": float(structure_right) / n_structure,
            "formulas_right": float(whole) / len(X),
        }
