/** Flags of a node. */
const HAS_NEXT = 1;
const HAS_BRANCHES = 2;

const ASCII = 128;
/** Memory in bytes for each node: its flags, label, fallback and longest pattern. */
const PER_NODE = 11;

/** A part of a string, from `start` up to `end`. */
export type MatchedSpan = readonly [start: number, end: number];

/**
 * Finds many patterns in one pass over the text (Aho and Corasick, 1975). The time depends on the text's length only,
 * not on the number of patterns or on how they repeat and overlap.
 *
 * The nodes of the patterns' trie are numbered from the root, 0. Most nodes have one child, which is the next number,
 * so only branching nodes need a map.
 */
export class PatternMatcher {
  /** The memory that it takes, in bytes. */
  readonly bytes: number;
  readonly #flags: Uint8Array;
  /** The code unit by which a node is reached from the node before it. */
  readonly #labels: Uint16Array;
  /** The node of the longest proper suffix of a node's text that is in the trie. */
  readonly #fallbacks: Int32Array;
  /** The length of the longest pattern with which a node's text ends. */
  readonly #longest: Int32Array;
  readonly #branches = new Map<number, Map<number, number>>();
  /** The root's children by ASCII character, 0 if there is none: most characters of the text are looked up here. */
  readonly #first = new Int32Array(ASCII);

  constructor(patterns: readonly string[]) {
    const most = patterns.reduce((sum, { length }) => sum + length, 1);
    const trie = new TrieBuilder(most, this.#branches);
    for (const pattern of patterns) trie.add(pattern);
    this.#flags = trie.flags.slice(0, trie.size);
    this.#labels = trie.labels.slice(0, trie.size);
    this.#longest = trie.lengths.slice(0, trie.size);
    this.#fallbacks = new Int32Array(trie.size);
    for (const [unit, child] of this.#branches.get(0) ?? []) if (unit < ASCII) this.#first[unit] = child;
    this.#link();
    this.bytes = trie.size * PER_NODE + this.#first.byteLength;
  }

  /** The parts of the text that patterns cover, in order. Patterns that overlap or touch form one part. */
  find(text: string): readonly MatchedSpan[] {
    const spans: MatchedSpan[] = [];
    const longest = this.#longest;
    for (let end = 1, node = 0; end <= text.length; end++) {
      node = this.#step(node, text.charCodeAt(end - 1));
      const length = longest[node] ?? 0;
      if (length === 0) continue;
      let start = end - length;
      for (let last = spans.at(-1); last && last[1] >= start; last = spans.at(-1)) {
        start = Math.min(start, last[0]);
        spans.pop();
      }
      spans.push([start, end]);
    }
    return spans;
  }

  /** The node for the longest beginning of a pattern with which the text read so far ends. */
  #step(from: number, unit: number): number {
    let node = from;
    while (node !== 0) {
      const child = this.#child(node, unit);
      if (child !== 0) return child;
      node = this.#fallbacks[node] ?? 0;
    }
    return (unit < ASCII ? this.#first[unit] : this.#branches.get(0)?.get(unit)) ?? 0;
  }

  /** 0 if there is none. */
  #child(node: number, unit: number): number {
    const flags = this.#flags[node] ?? 0;
    if ((flags & HAS_NEXT) !== 0 && this.#labels[node + 1] === unit) return node + 1;
    return (flags & HAS_BRANCHES) === 0 ? 0 : (this.#branches.get(node)?.get(unit) ?? 0);
  }

  /** Sets each node's fallback and longest pattern. They follow from those of nodes closer to the root. */
  #link(): void {
    const queue = new Int32Array(this.#flags.length);
    let queued = 0;
    const enqueue = (child: number, fallback: number): void => {
      this.#fallbacks[child] = fallback;
      this.#longest[child] ||= this.#longest[fallback] ?? 0;
      queue[queued++] = child;
    };
    for (const child of this.#branches.get(0)?.values() ?? []) enqueue(child, 0);
    for (let at = 0; at < queued; at++) {
      const node = queue[at] ?? 0;
      const fallback = this.#fallbacks[node] ?? 0;
      const flags = this.#flags[node] ?? 0;
      if ((flags & HAS_NEXT) !== 0) enqueue(node + 1, this.#step(fallback, this.#labels[node + 1] ?? 0));
      if ((flags & HAS_BRANCHES) === 0) continue;
      for (const [unit, child] of this.#branches.get(node) ?? []) enqueue(child, this.#step(fallback, unit));
    }
  }
}

class TrieBuilder {
  readonly flags: Uint8Array;
  readonly labels: Uint16Array;
  /** The length of the pattern that ends at a node; 0 if none does. */
  readonly lengths: Int32Array;
  readonly #branches: Map<number, Map<number, number>>;
  #size = 1;

  /** @param most the maximum number of nodes */
  constructor(most: number, branches: Map<number, Map<number, number>>) {
    this.flags = new Uint8Array(most);
    this.labels = new Uint16Array(most);
    this.lengths = new Int32Array(most);
    this.#branches = branches;
  }

  get size(): number {
    return this.#size;
  }

  add(pattern: string): void {
    let node = 0;
    for (let at = 0; at < pattern.length; at++) node = this.#child(node, pattern.charCodeAt(at));
    this.lengths[node] = pattern.length;
  }

  #child(node: number, unit: number): number {
    const flags = this.flags[node] ?? 0;
    if ((flags & HAS_NEXT) !== 0 && this.labels[node + 1] === unit) return node + 1;
    const found = this.#branches.get(node)?.get(unit);
    if (found !== undefined) return found;
    const child = this.#size++;
    if (node !== 0 && child === node + 1) {
      this.labels[child] = unit;
      this.flags[node] = flags | HAS_NEXT;
      return child;
    }
    const branches = this.#branches.get(node) ?? new Map<number, number>();
    this.#branches.set(node, branches.set(unit, child));
    this.flags[node] = flags | HAS_BRANCHES;
    return child;
  }
}
