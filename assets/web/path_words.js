// The whole path: what each stop says about the chosen token. Every sentence is computed from the numbers shown.
const quoted = (path, token) => `“${path.facts.tokens[token].piece}”`;
// With its place where the same piece comes again.
function named(path, token) {
  const { tokens } = path.facts, again = tokens.filter((other) => other.id === tokens[token].id).length > 1;
  return quoted(path, token) + (again ? ` (piece ${token})` : "");
}
const strong = (text) => ({ strong: text });
// By which rule the head was opened first, where it is that one.
function whyFirst(path, weights) {
  const { numbers, facts: { first }, state: { token, block, head } } = path;
  if (!first || numbers.mode === "left" || first.place.join() !== [token, block, head].join()) return "";
  const word = first.isContent ? "a content word (none like “the”)" : "another word", share = first.target === largest(weights) ? "" : ` (${percent(weights[first.target])} to ${named(path, first.target)})`;
  return first.usual === null ? ` It opens first: no other head gives ${word} more${share}.`
    : ` It opens first: no other head gives ${word} so much more than its average${share}, here ${percent(first.usual)}.`;
}
const several = (count, noun, more = `${noun}s`) => `${grouped(count)} ${count === 1 ? noun : more}`;

function blocksOf(takes) {
  const numbers = takes.map(({ block }) => block), last = numbers.pop();
  return numbers.length ? `blocks ${numbers.join(", ")} and ${last}` : `block ${last}`;
}

// What a stop says: its question, a line that explains, and its finding as texts and {strong: text}.
const WORDS = {
  pieces(path) {
    const { tokens, vocabulary } = path.facts, places = new Map();
    for (const token of tokens) if (!token.special) places.set(token.id, [...(places.get(token.id) ?? []), token]);
    const repeated = [...places.values()].sort((a, b) => b.length - a.length)[0] ?? [];
    const added = tokens.filter((token) => token.special).length, continued = tokens.filter((token) => token.goesOn).length;
    const finding = [`${several(tokens.length, "piece")}: ${tokens.length - added} from your text, ${added} added. `];
    const unknown = tokens.filter((token) => token.unknown).length;
    if (unknown) finding.push(strong(`${grouped(unknown)} ${unknown === 1 ? "is" : "are"} not in the vocabulary`), ": what stood there is lost to the model. ");
    else finding.push(continued ? `${continued} of them ${continued === 1 ? "continues" : "continue"} a word. ` : "No word had to be split. ");
    if (repeated.length > 1 && !repeated[0].unknown)
      finding.push(strong(`“${repeated[0].piece}”`), ` comes ${repeated.length} times, each time as ${repeated[0].id}.`);
    return ["Your text is cut into pieces", `The model knows ${grouped(vocabulary)} pieces. Each has a number, its id; the model never sees letters.`, finding];
  },
  zero(path) {
    const { numbers, facts, state: { token } } = path, name = quoted(path, token);
    const tables = { word: "which piece it is", position: "where it stands", segment: "which text it belongs to", task: "what the vector is for" };
    const parts = facts.parts.map((part) => part.name), counts = ["No", "One", "Two", "Three", "Four"];
    const line = parts.length > 1
      ? `${counts[parts.length]} vectors out of ${counts[parts.length].toLowerCase()} tables are added: ${parts.map((part) => tables[part]).join(", ")}.`
      : `One vector out of one table says which piece it is. ${facts.positions.includes("absolute") || !facts.blocks ? "" : "Where it stands enters later, in attention."}`;
    const finding = [];
    if (facts.blocks) finding.push("Nothing of its neighbours is in ", strong(name), " yet. ");
    else finding.push(strong(name), " has this vector in every sentence: the model has no blocks. ");
    if (parts.includes("position")) {
      const [word, position] = ["word", "position"].map((part) => lengthOf(numbers.part(part, token))), ratio = word / position;
      const asLong = (long, short) => {
        const digits = enough([long, short], (one, other) => one / other, 1);
        return `${shown(long / short, 1)} times as long as its ${long === word ? "position" : "word"} vector (${shown(long, digits)} ÷ ${shown(short, digits)}).`;
      };
      finding.push(ratio > 1.05 ? `Its word vector is ${asLong(word, position)}` : ratio < 0.95 ? `Its position vector is ${asLong(position, word)}`
        : "Its word vector is about as long as its position vector.");
    }
    return [`Each piece becomes ${facts.dim} numbers`, line, finding];
  },
  look(path) {
    const { numbers, facts, state: { token, block, head } } = path, name = quoted(path, token);
    const line = numbers.mode === "left" ? "It may only look left: tokens to its right are hidden, and the shares of the others still make 100 %."
      : `A head is one way of looking; ${facts.heads === 1 ? "this block has one" : `${facts.heads} work side by side`}. Its query for ${name} (what to look for) is held against the key of each token (what that one shows); a good match gets a large share.`;
    if (!numbers.hasBlock(block)) return [`Where does ${name} look?`, line, ["Loading this block …"]];
    const weights = numbers.weights(block, head, token), most = largest(weights);
    const inSight = facts.tokens.filter((_, key) => numbers.mayLook(block, token, key)).length;
    return [`Where does ${name} look?`, line + (inSight < facts.tokens.length && numbers.mode === "all" ? ` In this block it sees only tokens at most ${facts.windows[block]} places away.` : ""),
      [`Head ${head} of block ${block}: `, strong(name), ` gives ${percent(weights[most])} of its attention to `, most === token ? "itself" : strong(named(path, most)), `. Evenly spread it would be ${percent(1 / inSight)}.${whyFirst(path, weights)}`]];
  },
  take(path) {
    const { numbers, facts, state: { token, block, head } } = path, name = quoted(path, token);
    const took = numbers.took(block, token), most = largest(took, token);
    const line = `Each token hands over its value, cut to its share. The result is added to what ${name} was, which goes round attention unchanged (the residual): ${name} stays itself and is corrected.`;
    const whose = facts.heads > 1 ? `All ${facts.heads} heads together: of what ` : "Of what ";
    const finding = most < 0 || !took[most] ? [strong(name), " can take only from itself."]
      : [whose, strong(name), ` takes in block ${block}, ${percent(took[most])} comes from `, strong(named(path, most)), "."];
    if (numbers.hasBlock(block)) {
      if (facts.heads > 1) {
        const weights = numbers.weights(block, head, token), first = largest(weights);
        finding.push(` Head ${head}, drawn here, gives its largest share, ${percent(weights[first])}, to ${first === token ? "itself" : named(path, first)}.`);
      }
      const cosine = cosineOf(numbers.layer(block, token), numbers.step("after_attention", block, token));
      finding.push(` All it takes turns its vector by ${shown(degreesOf(cosine), 0)}°.`);
    }
    return [`What does ${name} take?`, line, finding];
  },
  alone(path) {
    const { numbers, facts, state: { token, block } } = path, name = quoted(path, token);
    const line = `No neighbours now: its ${facts.dim} numbers go into ${grouped(facts.inner)} neurons and come back as ${facts.dim}. These are added to what went round the neurons (the residual again).`;
    if (!numbers.hasBlock(block)) return [`Then ${name} works alone`, line, ["Loading this block …"]];
    const on = numbers.step("neurons", block, token).reduce((count, value) => count + ((facts.isGated ? Math.abs(value) : value) > 0.1), 0);
    const cosine = cosineOf(numbers.step("after_attention", block, token), numbers.layer(block + 1, token));
    return [`Then ${name} works alone`, line,
      [`${grouped(on)} of ${grouped(facts.inner)} neurons are on (${facts.isGated ? "beyond ±0.1" : "above 0.1"}). What they add turns `, strong(name), ` by ${shown(degreesOf(cosine), 0)}°. The result is layer ${block + 1}, which is what comes out of block ${block}.`]];
  },
  blocks(path) {
    const { numbers, facts, state: { token } } = path, name = quoted(path, token), last = facts.blocks;
    const takes = Array.from({ length: last }, (_, block) => {
      const took = numbers.took(block, token), from = largest(took, token);
      return { block, from, share: from < 0 ? 0 : took[from] };
    });
    // Those that read the same in the numbers of the stop are all named.
    const share = percent(Math.max(...takes.map((take) => take.share))), most = takes.filter((take) => take.share > 0 && percent(take.share) === share);
    const cosine = cosineOf(numbers.layer(last, token), numbers.layer(0, token));
    return [last === 1 ? "One block, and that is all" : `The same again, ${last} times`, `Lines: which tokens ${name} takes most from in each block. Dials: how far it has turned from its own layer 0 (turns go in different directions and do not add up).`,
      [`After ${several(last, "block")} `, strong(name), ` has turned by ${shown(degreesOf(cosine), 0)}° (cosine ${shownCosine(cosine)}). `,
        ...(most.length ? [`Its largest take: ${share} from `, ...[...new Set(most.map(({ from }) => from))].flatMap((from, at) => [at ? " and from " : "", strong(named(path, from)), `, in ${blocksOf(most.filter((take) => take.from === from))}`]), "."] : ["It could take only from itself."])]];
  },
  pool(path) {
    const { numbers, facts, state: { token } } = path, last = facts.blocks, count = facts.tokens.length;
    const how = { mean: `All token vectors are pooled into one: the mean of the ${several(facts.weights ? facts.weights.filter((weight) => weight > 0).length : count, "token vector")}`, cls: "All token vectors are pooled into one: that of the first token stands for all", max: "All token vectors are pooled into one: of each cell the largest number", last: "All token vectors are pooled into one: that of the last token stands for all" }[facts.pooling];
    const line = `${how}${facts.steps.length ? `, then ${facts.steps.join(", ")}` : ""}.${facts.second ? " The second sentence goes the same path." : ""} Search and grouping compare texts by this vector.`;
    const pooled = numbers.pooled("first"), cosines = facts.tokens.map((_, other) => cosineOf(numbers.layer(last, other), pooled));
    // Of the pieces of the text, where it has several: [CLS] and [SEP] are in every text.
    const ofText = facts.tokens.flatMap((other, place) => (other.special ? [] : [place])), among = ofText.length > 1 ? ofText : facts.tokens.map((_, place) => place);
    const most = among.reduce((best, place) => (cosines[place] > cosines[best] ? place : best)), least = among.reduce((best, place) => (cosines[place] < cosines[best] ? place : best));
    return ["One vector for the whole sentence", line,
      count < 2 ? [strong(quoted(path, token)), " is the only token."] : [ofText.length > 1 ? "Of your text, most like the result is " : "Most like the result is ", strong(named(path, most)), ` (cosine ${shownCosine(cosines[most])}), least `, strong(named(path, least)), ` (${shownCosine(cosines[least])})`, ...(token === most || token === least ? ["."] : ["; ", strong(quoted(path, token)), ` has ${shownCosine(cosines[token])}.`])]];
  },
  compare(path) {
    const { numbers, facts } = path;
    const line = "Multiply the two vectors number by number and add up. Both have length 1, so the sum is the cosine of their angle: 1 means the same direction, 0 a right angle. Search ranks texts by it.";
    if (!facts.second) return ["How alike are two sentences?", line, ["Add a second sentence at the top of the page to see the last step."]];
    const cosine = numbers.similarity(), range = facts.unrelated;
    if (numbers.mode === "left") {
      const usual = path.usualSimilarity();
      return ["How alike are the two sentences?", line, ["Cosine ", strong(shownCosine(cosine)), ` when each token may only look left${usual === null ? "" : `; ${shownCosine(usual)} when all see all`}.`]];
    }
    const judged = facts.unknownLanguage ? ". It says little: the model does not know the language" : cosine > 1 - 1e-6 ? ": the same direction" : !range ? "" : cosine > range[2] ? ": more alike than two texts that have nothing in common" : cosine < range[0] ? ": less alike than two texts that have nothing in common" : ": no more alike than two texts that have nothing in common";
    return ["How alike are the two sentences?", line,
      ["Cosine ", strong(shownCosine(cosine)), `${judged}${range && !facts.unknownLanguage ? ` (90\u00a0% of such pairs: ${shown(range[0])} to ${shown(range[2])})` : ""}.`, ...fromPairs(path)]];
  },
};
// Which pieces of the two texts pull their vectors together, and which apart.
// The words of all stops are written with each move: the ends of many pairs are sought once.
const endsOf = new WeakMap();
function ends(pairs) {
  const end = (sign) => pairs.reduce((best, pair) => (!best || sign * (pair.value - best.value) > 0 ? pair : best), null);
  return { count: pairs.length, most: end(1), least: end(-1) };
}
function fromPairs({ numbers, facts }) {
  const special = new Set(facts.tokens.filter((token) => token.special).map((token) => token.piece)), { pieces } = facts.second;
  const isText = ({ first, second }) => !facts.tokens[first].special && !special.has(pieces[second]);
  const all = numbers.pairs(), { count, most, least } = (all && (endsOf.get(all) ?? endsOf.set(all, ends(all.filter(isText))).get(all))) ?? { count: 0 };
  if (count < 2) return [];
  const place = (all, at) => `“${all[at]}”${all.filter((piece) => piece === all[at]).length > 1 ? ` (piece ${at})` : ""}`;
  const digits = (value) => [3, 4, 5].find((count) => Number(value.toFixed(count))) ?? 6;
  const words = ({ first, second, value }) => [strong(place(facts.tokens.map((token) => token.piece), first)), " with ", strong(place(pieces, second)), ` (${signed(value, digits(value))})`];
  return [` Of the ${grouped(count)} pairs of their pieces, `, ...(most.value > 0 ? [...words(most), " pulls them together most"] : ["none pulls them together"]),
    ...(least.value < 0 ? [", ", ...words(least), " apart."] : ["; none pulls them apart."])];
}
const plain = (finding) => finding.map((part) => part.strong ?? part).join("");

// What the rounded shares of a column leave to 100 %, as a row; none if nothing is left.
function roundingRow(shares, before) {
  const rest = missing(shares, 1, 2);
  return rest ? [["rounding", ...before.slice(1), `${signed(rest * 100, 0)}\u00a0%`]] : [];
}

// The rows of a table with the numbers of a stop, the heading first: for screen readers, and to copy.
const TABLES = {
  pieces: (path) => [["piece", "id", "text"], ...path.facts.tokens.map((token) => [token.piece, String(token.id), token.text || "added"])],
  zero(path) {
    const { numbers, facts, state: { token } } = path;
    const row = (name, vector) => [name, shown(lengthOf(vector)), Array.from(vector.slice(0, 4), (value) => shown(value, 3)).join(", ")];
    const parts = facts.parts.map((part) => numbers.part(part.name, token)), sum = parts.length > 1 ? numbers.partsSum(token) : null;
    const rests = sum ? Array.from(sum.slice(0, 4), (value, at) => missing(parts.map((part) => part[at]), value, 3)) : [];
    return [["vector", "length", "first numbers"], ...parts.map((part, number) => row(`${facts.parts[number].name} vector`, part)),
      ...(rests.some(Boolean) ? [["rounding", "", rests.map((rest) => (rest ? signed(rest, 3) : "0")).join(", ")]] : []),
      ...(sum ? [row("sum", sum)] : []), row("layer 0", numbers.layer(0, token))];
  },
  look(path) {
    const { numbers, facts, state: { token, block, head } } = path;
    if (!numbers.hasBlock(block)) return [["Loading this block …"]];
    const scores = numbers.scores(block, head, token), weights = numbers.weights(block, head, token);
    return [["token", "match", "share"], ...facts.tokens.map((other, key) => [other.piece, scores[key] === -Infinity ? "hidden" : shown(scores[key]), percent(weights[key])]), ...roundingRow(weights, ["", ""])];
  },
  take(path) {
    const took = path.numbers.took(path.state.block, path.state.token);
    return [["token", "part of what is taken"], ...took.map((share, key) => [path.facts.tokens[key].piece, percent(share)]), ...roundingRow(took, [""])];
  },
  alone(path) {
    const { numbers, state: { token, block } } = path;
    if (!numbers.hasBlock(block)) return [["Loading this block …"]];
    const neurons = numbers.step("neurons", block, token);
    const loudest = Array.from(neurons.keys()).sort((a, b) => Math.abs(neurons[b]) - Math.abs(neurons[a])).slice(0, 10);
    return [["neuron", "value"], ...loudest.map((place) => [String(place), shown(neurons[place])])];
  },
  blocks(path) {
    const { numbers, facts, state: { token } } = path;
    const rows = Array.from({ length: facts.blocks + 1 }, (_, layer) => {
      const cosine = cosineOf(numbers.layer(layer, token), numbers.layer(0, token));
      const took = layer ? numbers.took(layer - 1, token) : null, most = took ? largest(took, token) : -1;
      return [String(layer), shownCosine(cosine), `${shown(degreesOf(cosine), 0)}°`, most < 0 ? "" : `${percent(took[most])} from ${named(path, most)}`];
    });
    return [["layer", "cosine to layer 0", "turned by", "largest take in the block before it"], ...rows];
  },
  pool(path) {
    const { numbers, facts } = path, pooled = numbers.pooled("first");
    return [["token", "share", "cosine to the result"], ...facts.tokens.map((other, key) => [other.piece, facts.weights ? shown(facts.weights[key], 3) : "", shownCosine(cosineOf(numbers.layer(facts.blocks, key), pooled))])];
  },
  compare(path) {
    if (!path.facts.second) return [["Add a second sentence"]];
    const first = path.numbers.unit("first"), second = path.numbers.unit("second");
    const products = first.map((value, place) => value * second[place]);
    const above = total(products.filter((value) => value > 0)), below = total(products.filter((value) => value < 0));
    const rest = missing([above, below], path.numbers.similarity(), 3);
    return [["sum of products", ""], ["above zero", signed(above, 3)], ["below zero", signed(below, 3)], ...(rest ? [["rounding", signed(rest, 3)]] : []), ["cosine", shown(path.numbers.similarity(), 3)]];
  },
};
