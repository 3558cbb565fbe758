"""Encoder over points, autoregressive decoder over tokens.

Shapes
------
``B`` tables, ``N`` points, ``L`` tokens, ``W`` width, ``H`` heads, ``V`` vocabulary. Points have no positions: the
network sees a set, and a table whose rows are repeated equally often is the same table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sobolev_novelty.engines.transformer.tokenizer import MAX_INPUTS, PAD, vocabulary
from sobolev_novelty.errors import ParameterError, shortened

#: Numbers per point: inputs and target.
N_COLUMNS = MAX_INPUTS + 1
N_FREQUENCIES = 4
N_FEATURES = N_COLUMNS * (4 + 2 * N_FREQUENCIES)
#: Larger sizes are no network but a damaged file.
MAX_SIZE = 2**16


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Sizes of a network."""

    tokens: str  # {"skeleton", "float"}: constants as placeholders, or written out
    length: int  # longest sequence, BEGIN and END included
    width: int = 256
    heads: int = 8
    encoder_layers: int = 4
    decoder_layers: int = 8
    #: Whether queries and keys are brought to one length before they are compared. Without it scores grow without
    #: bound, and in a long run with bfloat16 the first layer ends in looking at one point.
    norm_attention: bool = False

    def __post_init__(self) -> None:
        if self.tokens not in ("skeleton", "float"):
            raise ParameterError(f"'tokens' must be 'skeleton' or 'float'. Got {self.tokens!r}.")
        for name in ("length", "width", "heads", "encoder_layers", "decoder_layers"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_SIZE:
                raise ParameterError(f"'{name}' must be a whole number from 1 to {MAX_SIZE}. Got {shortened(value)}.")
        if self.width % self.heads:
            raise ParameterError(f"'width' must be a multiple of 'heads', {self.heads}. Got {self.width}.")

    @property
    def with_floats(self) -> bool:
        """Whether constants are written as digits."""
        return self.tokens == "float"

    @property
    def vocabulary_size(self) -> int:
        """Rounded up to a multiple of 32 for the matrix units where it is large."""
        size = len(vocabulary(self.with_floats))
        return -(-size // 32) * 32 if size > 100 else size


def features(X: Tensor, y: Tensor) -> Tensor:
    """What the network sees of each number: z-score, asinh, mantissa, exponent and Fourier pairs of the z-score.

    ``X``: (B, N, 10), unused columns are 0.
    ``y``: (B, N).
    """
    v = torch.cat([X, y.unsqueeze(-1)], dim=-1)  # (B, N, C)
    peak = v.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)  # squares of large numbers leave the range of float32
    u = v / peak
    mean, deviation = u.mean(dim=1, keepdim=True), u.std(dim=1, keepdim=True)
    z = ((u - mean) / (deviation + 1e-12)).clamp(-6.0, 6.0)
    exponent = torch.floor(torch.log2(v.abs() + 1e-30)).clamp(-126.0, 126.0)
    parts = [z, torch.asinh(v) / 3.0, v * torch.exp2(-exponent), exponent / 10.0]
    for k in range(N_FREQUENCIES):
        angle = z * (math.pi / 4.0 * 2.0**k)
        parts += [torch.sin(angle), torch.cos(angle)]
    varies = (deviation > 0.0).to(v.dtype)
    return torch.cat([part * varies for part in parts], dim=-1)  # (B, N, F)


class Attention(nn.Module):
    """Multi-head attention whose keys and values are made apart, so that they can be kept."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, self.heads = settings.width, settings.heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        size = width // self.heads
        self.norm_query = nn.RMSNorm(size) if settings.norm_attention else nn.Identity()
        self.norm_key = nn.RMSNorm(size) if settings.norm_attention else nn.Identity()

    def split(self, x: Tensor) -> Tensor:
        """One slice per head."""
        B, N, W = x.shape
        return x.view(B, N, self.heads, W // self.heads).transpose(1, 2)  # (B, H, N, W/H)

    def keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of what is attended to."""
        keys, values = self.key_value(x).chunk(2, dim=-1)  # (B, N, W) each
        return self.norm_key(self.split(keys)), self.split(values)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """What ``x`` gathers from the values whose keys it resembles."""
        return self._gather(self.norm_query(self.split(self.query(x))), keys, values)

    def to_itself(self, x: Tensor, is_causal: bool = False) -> Tensor:
        """The same with keys and values of ``x``; one matrix makes all three, so that ``x`` is read once."""
        weight = torch.cat([self.query.weight, self.key_value.weight])
        bias = torch.cat([self.query.bias, self.key_value.bias])
        queries, keys, values = (self.split(part) for part in functional.linear(x, weight, bias).chunk(3, dim=-1))
        return self._gather(self.norm_query(queries), self.norm_key(keys), values, is_causal)

    def _gather(self, queries: Tensor, keys: Tensor, values: Tensor, is_causal: bool = False) -> Tensor:
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, N, W)

    def next(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The same for one place of each sequence, (B, 1, W), with keys and values as (L, B, H, W/H).

        On a CPU three times as fast as the fused attention, which is made for many queries.
        """
        queries = self.norm_query(self.split(self.query(x)))[:, :, 0] * keys.shape[-1] ** -0.5  # (B, H, W/H)
        chances = (keys * queries).sum(dim=-1).softmax(dim=0)  # (L, B, H)
        return self.out((values * chances.unsqueeze(-1)).sum(dim=0).flatten(1).unsqueeze(1))


class Layer(nn.Module):
    """Pre-norm layer: attention to itself, to the points (decoder only), feed-forward."""

    def __init__(self, settings: ModelSettings, *, is_decoder: bool) -> None:
        super().__init__()
        width = settings.width
        self.norm_self = nn.LayerNorm(width)
        self.attend_self = Attention(settings)
        if is_decoder:
            self.norm_points = nn.LayerNorm(width)
            self.attend_points = Attention(settings)
        self.norm_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def encode(self, x: Tensor) -> Tensor:
        """Points attend to points."""
        a = self.norm_self(x)  # (B, N, W)
        x = x + self.attend_self.to_itself(a)
        return x + self.feed(self.norm_feed(x))

    def decode(self, x: Tensor, point_keys: Tensor, point_values: Tensor) -> Tensor:
        """Tokens attend to the tokens before them and to the points."""
        x = x + self.attend_self.to_itself(self.norm_self(x), is_causal=True)  # (B, L, W)
        x = x + self.attend_points(self.norm_points(x), point_keys, point_values)
        return x + self.feed(self.norm_feed(x))

    def decode_next(self, x: Tensor, cache: LayerCache, place: int) -> Tensor:
        """One more token for ``S`` sequences of each of ``B`` tables; ``x`` is (B · S, 1, W)."""
        a = self.norm_self(x)
        keys, values = self.attend_self.keys(a)  # (B S, H, 1, W/H)
        cache.keys[place], cache.values[place] = keys[:, :, 0], values[:, :, 0]
        x = x + self.attend_self.next(a, cache.keys[: place + 1], cache.values[: place + 1])
        B = cache.point_keys.shape[0]
        queries = self.norm_points(x).view(B, -1, x.shape[-1])  # (B, S, W): the sequences of a table share its points
        x = x + self.attend_points(queries, cache.point_keys, cache.point_values).view_as(x)
        return x + self.feed(self.norm_feed(x))


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Keys and values of the tokens so far, (L, B · S, H, W/H), and of the points, (B, H, N, W/H)."""

    keys: Tensor
    values: Tensor
    point_keys: Tensor
    point_values: Tensor

    def first(self, n_sequences: int) -> LayerCache:
        """The cache of the first sequences of one table: a view."""
        return LayerCache(self.keys[:, :n_sequences], self.values[:, :n_sequences], self.point_keys, self.point_values)


class Model(nn.Module):
    """The network.

    ``seed``: of the initial weights; with None they are left for others to fill in.
    """

    def __init__(self, settings: ModelSettings, *, seed: int | None = 0) -> None:
        super().__init__()
        self.settings = settings
        W = settings.width
        self.embed_points = nn.Sequential(nn.Linear(N_FEATURES, 2 * W), nn.GELU(), nn.Linear(2 * W, W))
        self.encoder = nn.ModuleList(Layer(settings, is_decoder=False) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(Layer(settings, is_decoder=True) for _ in range(settings.decoder_layers))
        self.norm_encoder, self.norm_decoder = nn.LayerNorm(W), nn.LayerNorm(W)
        self.embed_tokens = nn.Embedding(settings.vocabulary_size, W)
        self.embed_places = nn.Embedding(settings.length, W)
        if seed is not None:
            self.initialise(seed)

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Matrices N(0, 1/fan-in), those that add to the residual stream smaller, embeddings N(0, 0.02²)."""
        generator = torch.Generator().manual_seed(seed)
        residual = 1.0 / math.sqrt(2.0 * len(self.decoder))
        for name, parameter in self.named_parameters():
            if parameter.ndim < 2:
                parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
                continue
            scale = 0.02 if name.startswith(("embed_tokens", "embed_places")) else parameter.shape[1] ** -0.5
            scale *= residual if name.endswith(("out.weight", "feed.2.weight")) else 1.0
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)

    def encode(self, X: Tensor, y: Tensor) -> Tensor:
        """Points as the decoder reads them: (B, N, 10), (B, N) -> (B, N, W)."""
        x = self.embed_points(features(X, y))
        for layer in self.encoder:
            x = layer.encode(x)
        return self.norm_encoder(x)

    def logits(self, x: Tensor) -> Tensor:
        """(…, W) -> (…, V); the embedding is used both ways."""
        return self.norm_decoder(x) @ self.embed_tokens.weight.T

    def forward(self, X: Tensor, y: Tensor, tokens: Tensor) -> Tensor:
        """Logits of the token after each given one: (B, N, 10), (B, N), (B, L) -> (B, L, V)."""
        point_keys = self.point_keys(self.encode(X, y))
        x = self.embed_tokens(tokens) + self.embed_places.weight[: tokens.shape[1]]  # (B, L, W)
        for layer, (keys, values) in zip(self.decoder, point_keys, strict=True):
            x = layer.decode(x, keys, values)
        return self.logits(x)

    def point_keys(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the points for each layer of the decoder; one matrix makes all of them."""
        projections = [layer.attend_points.key_value for layer in self.decoder]
        weight, bias = (torch.cat([getattr(p, name) for p in projections]) for name in ("weight", "bias"))
        B, N, _ = memory.shape
        made = functional.linear(memory, weight, bias).view(B, N, 2 * len(projections), self.settings.heads, -1)
        parts = [part.transpose(1, 2) for part in made.unbind(2)]  # (B, H, N, W/H) each
        keys = [layer.attend_points.norm_key(part) for layer, part in zip(self.decoder, parts[::2], strict=True)]
        return list(zip(keys, parts[1::2], strict=True))

    def loss(self, X: Tensor, y: Tensor, tokens: Tensor) -> Tensor:
        """Mean cross-entropy of the next token, in nats; padding does not count."""
        logits = self(X, y, tokens[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten(), ignore_index=PAD)

    def start(self, X: Tensor, y: Tensor, n_sequences: int) -> list[LayerCache]:
        """Encode tables and make room for ``n_sequences`` sequences of each."""
        settings = self.settings
        shape = (settings.length, X.shape[0] * n_sequences, settings.heads, settings.width // settings.heads)
        caches = []
        for keys, values in self.point_keys(self.encode(X, y)):
            caches.append(
                LayerCache(keys.new_empty(shape), keys.new_empty(shape), keys.contiguous(), values.contiguous())
            )
        return caches

    def next_logits(self, tokens: Tensor, caches: list[LayerCache], place: int) -> Tensor:
        """Logits after the tokens at ``place``, one per sequence: (B · S,) -> (B · S, V)."""
        x = self.embed_tokens(tokens.unsqueeze(1)) + self.embed_places.weight[place]  # (B S, 1, W)
        for layer, cache in zip(self.decoder, caches, strict=True):
            x = layer.decode_next(x, cache, place)
        return self.logits(x[:, 0])
