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
from components.model.architecture.modules import Place
from components.model.inside import InsideBlocks
from components.model.one_block.nearly_closed import closed_share
from components.shown_code.attention import part
from components.shown_code.code import AnyCode, Command
from components.shown_code.written import literal

if TYPE_CHECKING:
    from torch.nn import Module

    from components.model.architecture.modules import BlockModules, Projection
    from components.shown_code.arrays import Input


@dataclass(frozen=True)
class Inside:
    """The modules of the model that reads an input, by the names that transformers gives them."""

    read: Input

    @property
    def has_plain_scores(self) -> bool:
        """Whether scores are the products of queries and keys and nothing else, over all tokens."""
        structure = self.read.backend.structure
        is_plain = not (structure.rotates or structure.adds_to_scores or any(structure.windows))
        return is_plain and self.read.backend.loaded.modules.score_scale is None

    def block(self, number: int) -> BlockModules:
        """The modules of a block."""
        return self.read.backend.loaded.modules.blocks[number]

    def name(self, module: Module) -> str:
        """What the library calls a module; empty where it has none of its own, of which there is no code."""
        return next((name for name, each in self.read.backend.loaded.encoder.named_modules() if each is module), "")

    def names(self, *modules: Module) -> list[str]:
        """What the library calls some modules, each once."""
        return list(dict.fromkeys(map(self.name, modules)))

    def place(self, place: Place, number: int) -> str:
        """A tensor of the pass in a block, [token, dim], as the code has it."""
        structure, of_call = self.read.backend.structure, ""
        if structure.shares_blocks:
            of_call = f"[{structure.block_weights[:number].count(structure.block_weights[number])}]"
        return f"{'given' if place.end == 'input' else 'found'}[{literal(self.name(place.module))}]{of_call}[0]"

    def turns(self, blocks: Sequence[int]) -> AnyCode:
        """By how many degrees both steps of some blocks turn each token."""
        between = [self.block(block).after_attention for block in blocks]
        states = [
            f"    (hidden_states[{block}, 0], {self.place(place, block)}, hidden_states[{block + 1}, 0]),\n"
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
        rows, modules = [], []
        for number in blocks:
            block = self.block(number)
            places = [*block.added.values(), block.after_attention]
            rows.append(
                f"    (hidden_states[{number}, 0], {', '.join(self.place(place, number) for place in places)}),\n"
            )
            modules += [place.module for place in places]
        return self.read.states(
            (InsideBlocks,),
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
        queries, keys = (self._rows(each, number, head * size, size) for each in projections)
        return self.read.states(
            (head_scores,),
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
        size = block.query.size // self.read.backend.facts.heads
        of_key = head * block.key.size // block.query.size  # heads may share their keys
        query, key = (
            f"{self._rows(each, number, at * size, size)}[{place}]"
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

    def _rows(self, projection: Projection, number: int, first: int, size: int) -> str:
        """Some of the outputs of a projection in a block, for all tokens."""
        first += projection.first
        return f"{self.place(Place(projection.linear), number)}[:, {first}:{first + size}]"

    def norms(self, number: int, head: int | None, queries: Sequence[int], keys: Sequence[int]) -> AnyCode:
        """What each key adds to each query in a block, as a length: by all heads together, or by one."""
        block, heads = self.block(number), self.read.backend.facts.heads
        function = summed_norms if head is None else weighted_norms
        if block.value.size != block.attention_dense.in_features:
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
            f"rows = {self._rows(block.value, number, 0, block.value.size)}.reshape(len(inputs['input_ids'][0]), {heads}, -1)",
            f"dense = model.get_submodule({literal(self.name(block.attention_dense))}).weight.detach().numpy()",
            f"vectors = np.einsum('khd,ohd->hko', rows, dense.reshape(len(dense), {heads}, -1))  # f(x) [head, key, dim]",
            computed,
            f"values = {part('values', queries, keys)}",
            "print(values)  # [query, key], a length",
            modules=self.names(block.value.linear),
        )

    def layer_zero(self) -> AnyCode:
        """The lengths of the parts of layer 0 of one sentence, of their sum, and of layer 0."""
        lengths = "values = np.array([np.linalg.norm(part, axis=-1)[0] for part in parts])"
        return self._parts(lengths, "print(values)  # [part, token]")

    def layer_zero_cosines(self, positions: Sequence[int], pairs: Sequence[tuple[int, int]]) -> AnyCode:
        """The cosines of the parts of tokens, one in each sentence, for pairs of sentences."""
        return self._parts(
            f"tokens = [part[range({len(positions)}), {literal(list(positions))}] for part in parts]  # [sentence, dim] each",
            f"first, second = np.transpose({literal(list(pairs))})",
            "values = np.array([cosine(part[first], part[second]) for part in tokens]).T",
            "print(values)  # [pair, part]",
        )

    def _parts(self, *statements: str) -> AnyCode:
        tables = self.read.backend.loaded.modules.tables
        names = self.names(*tables.values())
        of_call = "[0]" if self.read.backend.structure.shares_blocks else ""
        # Of one part, the sum is that part.
        whole = "[*parts, sum(parts), hidden_states[0]]" if len(names) > 1 else "[*parts, hidden_states[0]]"
        return self.read.states(
            (cosine, part_norms),
            f"parts = np.broadcast_arrays(*(found[name]{of_call} for name in {literal(names)}))",
            f"parts = {whole}  # [sentence, token, dim] each",
            *statements,
            modules=names,
        )

    def inner(self, blocks: Sequence[int], *statements: str) -> AnyCode:
        """Code from `inner`, what the inner dimensions of some blocks give: [block, token, dimension]."""
        modules = [self.block(block) for block in blocks]
        if any(block.gate for block in modules):
            return Command(closed_share)
        denses = [block.feed_forward_dense for block in modules]
        given = [self.place(Place(dense, "input"), block) for dense, block in zip(denses, blocks, strict=True)]
        return self.read.states(
            (closed_share, strongest),
            f"inner = np.array([{', '.join(given)}])  # [block, token, inner dimension]",
            *statements,
            modules=self.names(*denses),
        )
