"""Code for what the modules inside a model get and give, which hooks on the library's own modules read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.analysis.attention.flow import summed_norms, weighted_norms
from components.analysis.attention.rotation import score_by_distance
from components.analysis.attention.scores import head_scores
from components.analysis.inner_dimensions import strongest
from components.analysis.layer_zero import part_norms
from components.analysis.similarity.cosines import turn
from components.arrays import cosine
from components.model.inside import InsideBlocks
from components.model.one_block.nearly_closed import closed_share
from components.shown_code.arrays import is_elsewhere
from components.shown_code.attention import part
from components.shown_code.code import AnyCode, Command
from components.shown_code.written import literal

if TYPE_CHECKING:
    from torch.nn import Module

    from components.model.architecture.modules import BlockModules, Place, Projection
    from components.shown_code.arrays import Input


@dataclass(frozen=True)
class Inside:
    """The modules of the model that reads an input, by the names that transformers gives them."""

    read: Input

    @property
    def has_names(self) -> bool:
        """Whether each block has modules of its own, which are called once in a pass."""
        backend = self.read.backend
        in_pieces = getattr(backend.loaded.encoder.config, "chunk_size_feed_forward", 0)
        return is_elsewhere(backend) and not backend.structure.shares_blocks and not in_pieces

    @property
    def has_plain_scores(self) -> bool:
        """Whether scores are the products of queries and keys and nothing else, over all tokens."""
        structure = self.read.backend.structure
        is_plain = not (structure.rotates or structure.adds_to_scores or any(structure.windows))
        return self.has_names and is_plain and self.read.backend.loaded.modules.score_scale is None

    def block(self, number: int) -> BlockModules:
        """The modules of a block."""
        return self.read.backend.loaded.modules.blocks[number]

    def name(self, module: Module) -> str:
        """What the library calls a module."""
        return next(name for name, each in self.read.backend.loaded.encoder.named_modules() if each is module)

    def place(self, place: Place) -> str:
        """A tensor of the pass, [token, dim], as the code has it."""
        return f"{'given' if place.end == 'input' else 'found'}[{literal(self.name(place.module))}][0]"

    def names(self, *modules: Module) -> list[str]:
        """What the library calls some modules, each once."""
        return list(dict.fromkeys(map(self.name, modules)))

    def turns(self, blocks: Sequence[int]) -> AnyCode:
        """By how many degrees both steps of some blocks turn each token."""
        if not self.has_names:
            return Command(turn)
        between = [self.block(block).after_attention for block in blocks]
        states = [
            f"    (hidden_states[{block}, 0], {self.place(place)}, hidden_states[{block + 1}, 0]),\n"
            for block, place in zip(blocks, between, strict=True)
        ]
        return self.read.states(
            (cosine, turn),
            f"states = [\n{''.join(states)}]  # before a block, between its steps, and after it: [token, dim] each",
            "values = [[turn(before, between), turn(between, after)] for before, between, after in states]",
            "print(np.array(values))  # [block, step, token], in degrees",
            modules=self.names(*(place.module for place in between)),
        )

    def lengths(self, blocks: Sequence[int]) -> AnyCode:
        """Lengths of a token's vector before a block, of what both parts add to it, and of what the second is added to."""
        if not self.has_names:
            return Command(InsideBlocks)
        rows, modules = [], []
        for number in blocks:
            block = self.block(number)
            places = [*block.added.values(), block.after_attention]
            rows.append(f"    (hidden_states[{number}, 0], {', '.join(map(self.place, places))}),\n")
            modules += [place.module for place in places]
        return self.read.states(
            (),
            f"parts = [\n{''.join(rows)}]",
            "values = np.linalg.norm(np.array(parts, np.float64), axis=-1)",
            "print(values)  # [block, part, token]: before it, by attention, by feed-forward, between them",
            modules=self.names(*modules),
        )

    def scores(self, number: int, head: int, query: int) -> AnyCode:
        """The scores of a query with all keys in one head, and the attention that they become."""
        block = self.block(number)
        projections = (block.query, block.key)
        if not self.has_plain_scores or block.query.size != block.key.size:
            return Command(head_scores)
        size = block.query.size // self.read.backend.facts.heads
        queries, keys = (self._rows(each, head * size, size) for each in projections)
        return self.read.states(
            (),
            f"queries = {queries}  # [token, dimension of the head]",
            f"keys = {keys}",
            f"values = queries[{query}] @ keys.T / np.sqrt({size})",
            "shares = np.exp(values - values.max())",
            "print(values, shares / shares.sum())  # [key]: scores, and the attention that they become",
            modules=self.names(*(each.linear for each in projections)),
        )

    def by_distance(
        self, number: int, head: int, pair: tuple[int, int], speeds: str, ends: tuple[int, int], scale: float
    ) -> AnyCode:
        """The scores of a query and a key (`pair`) if the key stood elsewhere, from its first to its last place.

        Places are counted from the query; `speeds` is the statement that gives those of the rotation.
        """
        block = self.block(number)
        if not self.has_names:
            return Command(score_by_distance)
        size = block.query.size // self.read.backend.facts.heads
        of_key = head * block.key.size // block.query.size  # heads may share their keys
        query, key = (
            f"{self._rows(each, at * size, size)}[{place}]"
            for each, at, place in ((block.query, head, pair[0]), (block.key, of_key, pair[1]))
        )
        return self.read.states(
            (score_by_distance,),
            speeds,
            f"query = {query}  # before the rotation, [dimension of the head]",
            f"key = {key}",
            f"places = np.arange({ends[0]}, {ends[1] + 1})  # of the key, seen from the query",
            f"values = score_by_distance(query, key, 0, speeds, -places, {scale!r})",
            "print(values)  # [place]",
            modules=self.names(block.query.linear, block.key.linear),
        )

    def _rows(self, projection: Projection, first: int, size: int) -> str:
        """Some of the outputs of a projection, for all tokens."""
        first += projection.first
        return f"found[{literal(self.name(projection.linear))}][0][:, {first}:{first + size}]"

    def norms(self, number: int, head: int | None, queries: Sequence[int], keys: Sequence[int]) -> AnyCode:
        """What each key adds to each query in a block, as a length: by all heads together, or by one."""
        block, heads = self.block(number), self.read.backend.facts.heads
        function = summed_norms if head is None else weighted_norms
        if not self.has_names or block.value.size != block.attention_dense.in_features:
            return Command(function)
        weights = f"attentions[{number}, 0]"
        if head is None:
            computed = f"values = summed_norms({weights}, vectors)"
        else:
            one = f"{weights}[None, {head}:{head + 1}]"
            computed = (
                f"values = weighted_norms({one}, np.linalg.norm(vectors[None, {head}:{head + 1}], axis=-1))[0, 0]"
            )
        return self.read.attentions(
            (function,),
            f"rows = {self._rows(block.value, 0, block.value.size)}.reshape(len(inputs['input_ids'][0]), {heads}, -1)",
            f"dense = model.get_submodule({literal(self.name(block.attention_dense))}).weight.detach().numpy()",
            f"vectors = np.einsum('khd,ohd->hko', rows, dense.reshape(len(dense), {heads}, -1))  # f(x) [head, key, dim]",
            computed,
            f"values = {part('values', queries, keys)}",
            "print(values)  # [query, key], a length",
            modules=self.names(block.value.linear),
        )

    def layer_zero(self) -> AnyCode:
        """The lengths of the parts of layer 0 of one sentence, of their sum, and of layer 0."""
        return self._parts("values = np.linalg.norm(parts, axis=-1)[:, 0]", "print(values)  # [part, token]")

    def layer_zero_cosines(self, positions: Sequence[int], pairs: Sequence[tuple[int, int]]) -> AnyCode:
        """The cosines of the parts of tokens, one in each sentence, for pairs of sentences."""
        return self._parts(
            f"tokens = np.array(parts)[:, range({len(positions)}), {literal(list(positions))}]  # [part, sentence, dim]",
            f"first, second = np.transpose({literal(list(pairs))})",
            "values = cosine(tokens[:, first], tokens[:, second]).T",
            "print(values)  # [pair, part]",
        )

    def _parts(self, *statements: str) -> AnyCode:
        tables = self.read.backend.loaded.modules.tables
        if not is_elsewhere(self.read.backend):
            return Command(part_norms)
        names = self.names(*tables.values())
        # Of one part, the sum is that part.
        whole = "[*parts, sum(parts), hidden_states[0]]" if len(names) > 1 else "[*parts, hidden_states[0]]"
        return self.read.states(
            (cosine,),
            f"parts = [np.broadcast_to(found[name], hidden_states[0].shape) for name in {literal(names)}]",
            f"parts = {whole}  # [sentence, token, dim] each",
            *statements,
            modules=names,
        )

    def inner(self, blocks: Sequence[int], *statements: str) -> AnyCode:
        """Code from `inner`, what the inner dimensions of some blocks give: [block, token, dimension]."""
        modules = [self.block(block) for block in blocks]
        if not self.has_names or any(block.gate for block in modules):
            return Command(closed_share)
        names = self.names(*(block.feed_forward_dense for block in modules))
        return self.read.states(
            (closed_share, strongest),
            f"inner = np.array([given[name][0] for name in {literal(names)}])  # [block, token, inner dimension]",
            *statements,
            modules=names,
        )
