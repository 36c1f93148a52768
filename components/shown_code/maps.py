"""Code for maps of tokens: the library's method, and how the maps of all layers are brought to one place and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.analysis.maps.projection import FITTED, align, layer_map, normalised
from components.arrays import unit
from components.shown_code.arrays import of_watch
from components.shown_code.code import AnyCode, Code, Command
from components.shown_code.written import call, literal

if TYPE_CHECKING:
    from components.analysis.maps.projection import MapOptions
    from components.shown_code.vectors import Vectors


@dataclass(frozen=True)
class MapTokens:
    """The tokens of a map, by their vectors."""

    vectors: Vectors

    def layers(self, options: MapOptions, shown: Sequence[int]) -> AnyCode:
        """The maps of some layers, each aligned to the common start of all."""
        return self._code(
            options,
            "start = normalised(fit(sum(unit(layer) for layer in vectors)))  # the mean directions of all layers",
            f"values = [align(normalised(fit(vectors[layer], start)), start) for layer in {literal(list(shown))}]",
            "print(values)  # [token, axis] for each layer",
        )

    def joint(self, options: MapOptions, first: int, second: int) -> AnyCode:
        """One map of the vectors of two layers."""
        return self._code(
            options,
            f"values = normalised(fit(np.concatenate([vectors[{first}], vectors[{second}]])))",
            f"print(values)  # [token at layer {first}, then at layer {second}; axis]",
        )

    def _code(self, options: MapOptions, *statements: str) -> AnyCode:
        if self.vectors.count > FITTED or options.method == "pacmap":
            return Command(layer_map)
        return self.vectors.code((unit, normalised, align), *_fit(options, self.vectors.count), *statements)


def of_watched(run: str, steps: Sequence[int], options: MapOptions, count: int) -> Code:
    """The map of the `count` tokens at the last of a training run's steps, aligned to that of the first."""
    return of_watch(
        run,
        steps,
        (unit, normalised, align),
        *_fit(options, count),
        "maps = [normalised(fit(vectors[-1])) for vectors in tokens]  # of the last layer",
        "values = align(maps[-1], maps[0]) if len(maps) > 1 else maps[0]",
        "print(values)  # [token, axis]",
    )


def _fit(options: MapOptions, count: int) -> tuple[str, str]:
    """The statements that define `fit`, the method of the library."""
    given = "unit(vectors)" if options.metric == "cosine" else "vectors"
    if options.method == "pca":
        # As in `projection`: the solver that is exact and fast for so many points.
        solver = f'"covariance_eigh" if {count} > vectors.shape[1] else "full"'
        method = f"PCA({options.dims}, svd_solver={solver})"
        return "from sklearn.decomposition import PCA\n", _defined(method, given)
    if options.method == "tsne":
        method = call(
            "TSNE",
            n_components=options.dims,
            perplexity=max(1.0, min(options.n_neighbors, (count - 1) / 3)),
            metric=options.metric,
            random_state=options.seed,
        )
        init = 'init="pca" if start is None else start / start[:, 0].std() * 1e-4'
        return "from sklearn.manifold import TSNE\n", _defined(_with(method, init), given)
    method = call(
        "UMAP",
        n_components=options.dims,
        n_neighbors=min(options.n_neighbors, count - 1),
        min_dist=options.min_dist,
        metric=options.metric,
        random_state=options.seed,
        n_jobs=1,
    )
    init = 'init="pca" if start is None else start, learning_rate=1.0 if start is None else 0.5'
    return "from umap import UMAP\n", _defined(_with(method, init), given)


def _with(call_of: str, last: str) -> str:
    """A call with further arguments, in several lines."""
    name, _, arguments = call_of[:-1].partition("(")
    return f"{name}(\n        {arguments},\n        {last},\n    )"


def _defined(method: str, given: str) -> str:
    return f"def fit(vectors, start=None):\n    method = {method}\n    return method.fit_transform({given})\n"
