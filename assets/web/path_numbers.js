// The whole path: the arrays that the server sent, and what is computed from them here (sums, products, shares, cosines).
// Everything is summed in float64. tests/browser/test_path.py compares each function with Python's.

// Arrays that were received stay for as long as the tab does, also while another view is open: by the path's id.
const received = (globalThis.bertInternalsPaths ??= new Map());
const MOST_KEPT = 4; // paths

function keep({ facts, arrays }) {
  const store = received.get(facts.id) ?? new Map();
  received.delete(facts.id); // the path that was used last stands last
  received.set(facts.id, store);
  for (const [name, array] of arrays) store.set(name, array);
  while (received.size > MOST_KEPT) received.delete(received.keys().next().value);
  return store;
}

const dot = (a, b) => {
  let sum = 0;
  for (let place = 0; place < a.length; place++) sum += a[place] * b[place];
  return sum;
};
const total = (values) => values.reduce((sum, value) => sum + value, 0);
const lengthOf = (vector) => Math.sqrt(dot(vector, vector));
const cosineOf = (a, b) => dot(a, b) / (lengthOf(a) * lengthOf(b) || 1);
const degreesOf = (cosine) => (Math.acos(Math.min(1, Math.max(-1, cosine))) * 180) / Math.PI;
function sumOf(...vectors) {
  const sum = new Float64Array(vectors[0].length);
  for (const vector of vectors) for (let place = 0; place < sum.length; place++) sum[place] += vector[place];
  return sum;
}
function softmax(scores) {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = total(powers);
  return powers.map((power) => power / sum);
}
// The place of the largest value, without one of them; -1 if there is none.
const largest = (values, without = -1) =>
  values.reduce((best, value, place) => (place !== without && (best < 0 || value > values[best]) ? place : best), -1);

// Digits: each number is rounded once, from its own value. Where rounded terms miss their rounded sum, `missing` is the rest.
const shown = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
};
const signed = (value, digits = 2) => {
  const text = shown(value, digits);
  return text[0] === "−" ? text : `+${text}`;
};
const percent = (share) => `${(share * 100).toFixed(0)}\u00a0%`;
const grouped = (number) => number.toLocaleString("en");
function missing(terms, sum, digits) {
  const units = (value) => Math.round(Number(value.toFixed(digits)) * 10 ** digits);
  return (units(sum) - total(terms.map(units))) / 10 ** digits;
}
// The fewest digits, from `least` on, with which written numbers give the written result when somebody calculates with them.
function enough(values, give, digits, least = 2) {
  const result = shown(give(...values), digits);
  let more = least;
  while (more < least + 4 && shown(give(...values.map((value) => Number(value.toFixed(more)))), digits) !== result) more++;
  return more;
}
const times = (one, other) => one * other;
// Cosines that two decimals would call 1 or −1 have three.
const shownCosine = (cosine) => shown(cosine, Math.abs(cosine) < 1 - 1e-6 && Math.abs(cosine) >= 0.995 ? 3 : 2);

// One sentence's path in one mode: "all", or "left", where a token attends only to itself and what stands before it.
class Numbers {
  constructor(facts, store) {
    this.facts = facts;
    this.store = store;
    this.kept = new Map();
    this.mode = "all";
  }

  once(name, compute) {
    const key = `${this.mode} ${name}`;
    if (!this.kept.has(key)) this.kept.set(key, compute());
    return this.kept.get(key);
  }

  has(name) {
    return this.store.has(name);
  }

  hasMode() {
    return this.has(`${this.mode}.layers`);
  }

  hasBlock(block) {
    return this.has(`${this.mode}.${block}.queries`);
  }

  // A row of an array by its first numbers: array("layers", layer, token) is a vector.
  row(name, ...places) {
    const { values, shape } = this.store.get(name);
    let at = 0, size = values.length;
    places.forEach((place, axis) => {
      size /= shape[axis];
      at += place * size;
    });
    return values.subarray(at, at + size);
  }

  layer(layer, token) {
    return this.row(`${this.mode}.layers`, layer, token);
  }

  part(name, token) {
    return this.row(`part.${name}`, token);
  }

  partsSum(token) {
    return this.once(`parts ${token}`, () => sumOf(...this.facts.parts.map((part) => this.part(part.name, token))));
  }

  // Of an opened block: "attention_output", "after_attention", "neurons", ... of a token.
  step(name, block, token) {
    return this.row(`${this.mode}.${block}.${name}`, token);
  }

  ofHead(name, block, head, token) {
    return this.row(`${this.mode}.${block}.${name}`, head, token);
  }

  mayLook(block, query, key) {
    const window = this.facts.windows[block];
    return !(this.mode === "left" && key > query) && (window === null || Math.abs(query - key) <= window);
  }

  products(block, head, query, key) {
    return this.once(`products ${block} ${head} ${query} ${key}`, () => {
      const other = this.ofHead("keys", block, head, key);
      return Float64Array.from(this.ofHead("queries", block, head, query), (value, place) => value * other[place]);
    });
  }

  // What the architecture adds to a scaled product, as [name, value].
  terms(block, head, query, key) {
    return this.facts.terms.map((name) => [name, this.row(`${this.mode}.${block}.term.${name}`, head, query)[key]]);
  }

  // The matches of a query with every key: query · key × scale, and what is added; −∞ for keys out of sight.
  scores(block, head, query) {
    return this.once(`scores ${block} ${head} ${query}`, () =>
      this.facts.tokens.map((_, key) => {
        if (!this.mayLook(block, query, key)) return -Infinity;
        const product = dot(this.ofHead("queries", block, head, query), this.ofHead("keys", block, head, key));
        return product * this.facts.scale + total(this.terms(block, head, query, key).map(([, value]) => value));
      }));
  }

  weights(block, head, query) {
    return this.once(`weights ${block} ${head} ${query}`, () => softmax(this.scores(block, head, query)));
  }

  weighted(block, head, query, key) {
    return this.once(`weighted ${block} ${head} ${query} ${key}`, () => {
      const weight = this.weights(block, head, query)[key];
      return Float64Array.from(this.ofHead("values", block, head, key), (value) => value * weight);
    });
  }

  // The heads' sums one after another: what the output matrix reads.
  joined(block, query) {
    return this.once(`joined ${block} ${query}`, () => {
      const { heads, headSize, tokens } = this.facts;
      const joined = new Float64Array(heads * headSize);
      for (let head = 0; head < heads; head++)
        joined.set(sumOf(...tokens.map((_, key) => this.weighted(block, head, query, key))), head * headSize);
      return joined;
    });
  }

  afterTake(block, token) {
    return this.once(`taken ${block} ${token}`, () =>
      sumOf(this.layer(block, token), this.step("attention_output", block, token)));
  }

  afterAlone(block, token) {
    return this.once(`alone ${block} ${token}`, () =>
      sumOf(this.step("after_attention", block, token), this.step("feed_forward_output", block, token)));
  }

  // A norm by its own formula; `name` is one of `facts.norms` of a block ("0.after attention", ..., "final", "layer 0").
  normed(vector, name) {
    const { epsilon, isCentred } = this.facts.norms[name];
    const scale = this.row(`norm.${name}.scale`), shift = this.row(`norm.${name}.shift`);
    const mean = isCentred ? total(vector) / vector.length : 0;
    const spread = Math.sqrt(vector.reduce((sum, value) => sum + (value - mean) ** 2, 0) / vector.length + epsilon);
    return { mean, spread, scale, shift, values: vector.map((value, place) => ((value - mean) / spread) * scale[place] + shift[place]) };
  }

  // How much of what a token takes in a block comes from each token: shares that sum to 1.
  took(block, token) {
    return this.once(`took ${block} ${token}`, () => {
      const lengths = Array.from(this.row(`${this.mode}.took`, block, token)), sum = total(lengths);
      return lengths.map((length) => (sum ? length / sum : 0));
    });
  }

  // How far the steps of an opened block are from what the model did with its tokens, relative to their lengths.
  check(block) {
    const worst = { after: 0, next: 0 };
    const far = (a, b) => lengthOf(sumOf(a, Array.from(b, (value) => -value))) / (lengthOf(b) || 1);
    const { normsFirst, hasFinalNorm, blocks, tokens } = this.facts;
    tokens.forEach((_, token) => {
      const taken = this.afterTake(block, token), alone = this.afterAlone(block, token);
      const after = normsFirst ? taken : this.normed(taken, `${block}.after attention`).values;
      const last = !normsFirst ? `${block}.after feed-forward` : hasFinalNorm && block + 1 === blocks ? "final" : "";
      const next = last ? this.normed(alone, last).values : alone;
      worst.after = Math.max(worst.after, far(after, this.step("after_attention", block, token)));
      worst.next = Math.max(worst.next, far(next, this.layer(block + 1, token)));
    });
    return worst;
  }

  // The vector of a text: "first" or "second".
  vector(which) {
    return this.row(`${this.mode}.${which}.vector`);
  }

  pooled(which) {
    return this.row(`${this.mode}.${which}.pooled`);
  }

  unit(which) {
    return this.once(`unit ${which}`, () => {
      const vector = this.vector(which), length = lengthOf(vector) || 1;
      return Float64Array.from(vector, (value) => value / length);
    });
  }

  // What each pair of tokens adds to the cosine, as { first, second, value }, which sum to it; null where the sentences' vectors are
  // no plain means of their tokens' vectors.
  pairs() {
    const { tokens, second, pooling, steps, weights, blocks, dim } = this.facts;
    if (pooling !== "mean" || steps.length || !weights?.every(Boolean) || second.weighted !== second.pieces.length) return null;
    return this.once("pairs", () => {
      const all = tokens.length * second.pieces.length * lengthOf(this.pooled("first")) * lengthOf(this.pooled("second")) || 1;
      return tokens.flatMap((_, first) => second.pieces.map((_, other) => ({
        first, second: other, value: dot(this.layer(blocks, first), this.row(`${this.mode}.second.layer`, other)) / all,
      })));
    });
  }

  similarity() {
    return this.once("similarity", () => dot(this.unit("first"), this.unit("second")));
  }
}
