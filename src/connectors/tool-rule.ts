import { takeTurn } from "../base/inflow.ts";

/** A rule that decides by a list of patterns whether something holds for a tool. */
export interface ToolRuleParts {
  readonly test: (patterns: readonly string[], name: string) => boolean;
  /** How long testing one name takes, in bytes that are measured in the same time (see `Arrival`). */
  readonly cost: (patterns: readonly string[]) => number;
}

/** Some of the tools of a list. */
export interface ToolSubset {
  /** @param index the tool's index in the list */
  has(index: number): boolean;
}

interface Decision {
  readonly made: Promise<ToolSubset>;
  /** Undefined until it is made. */
  subset: ToolSubset | undefined;
}

type Tools = readonly { readonly name: string }[];
type Decisions = WeakMap<Tools, WeakMap<readonly string[], Decision>>;

/** Cost of the tools that are decided at a time: half of one turn of the event loop. */
const SLICE = 256 * 1024;
/** Bytes of memory for all decisions of a rule: see `access/list-memory.ts`. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Bytes that a decision takes besides its bits. */
const DECISION = 1_024;

/**
 * Decides for whole lists of tools. A workspace may have 10,000 tools and an agent hundreds of patterns, so each list
 * of tools is decided once for each list of patterns, and other work runs in between. Decisions take one bit per tool.
 * They are kept as long as both lists, unless others need their memory. Neither list may be changed after its first use.
 */
export class ToolRule {
  readonly #parts: ToolRuleParts;
  readonly #half: number;
  #recent: Decisions = new WeakMap();
  /** Decisions move back to `#recent` when they are used. */
  #older: Decisions = new WeakMap();
  /** Bytes of `#recent`. Includes decisions about lists that are gone. */
  #bytes = 0;

  constructor(parts: ToolRuleParts, mostBytes = MOST_BYTES) {
    this.#parts = parts;
    this.#half = mostBytes / 2;
  }

  /** The tools for which the rule holds. */
  of(workspaceId: number, tools: Tools, patterns: readonly string[]): Promise<ToolSubset> {
    const known = this.#find(tools, patterns);
    if (known) return known.made;
    const decision: Decision = { made: this.#decide(workspaceId, tools, patterns), subset: undefined };
    this.#keep(tools, patterns, decision);
    void decision.made.then((subset) => {
      decision.subset = subset;
    });
    return decision.made;
  }

  /** What `of` has already decided. */
  known(tools: Tools, patterns: readonly string[]): ToolSubset | undefined {
    return this.#find(tools, patterns)?.subset;
  }

  #find(tools: Tools, patterns: readonly string[]): Decision | undefined {
    const recent = this.#recent.get(tools)?.get(patterns);
    if (recent) return recent;
    const older = this.#older.get(tools)?.get(patterns);
    if (older) this.#keep(tools, patterns, older);
    return older;
  }

  #keep(tools: Tools, patterns: readonly string[], decision: Decision): void {
    const byPatterns = this.#recent.get(tools) ?? new WeakMap<readonly string[], Decision>();
    this.#recent.set(tools, byPatterns.set(patterns, decision));
    this.#bytes += DECISION + tools.length / 8;
    if (this.#bytes <= this.#half) return;
    this.#older = this.#recent;
    this.#recent = new WeakMap();
    this.#bytes = 0;
  }

  async #decide(workspaceId: number, tools: Tools, patterns: readonly string[]): Promise<ToolSubset> {
    const { test } = this.#parts;
    const cost = this.#parts.cost(patterns);
    const step = Math.max(1, Math.floor(SLICE / cost));
    const bits = new Uint8Array(Math.ceil(tools.length / 8));
    for (let from = 0; from < tools.length; from += step) {
      const slice = tools.slice(from, from + step);
      const turn = takeTurn(workspaceId, { bytes: slice.length * cost });
      if (turn) await turn;
      for (const [index, { name }] of slice.entries()) {
        if (test(patterns, name)) setBit(bits, from + index);
      }
    }
    return { has: (index) => hasBit(bits, index) };
  }
}

function setBit(bits: Uint8Array, index: number): void {
  bits[index >>> 3] = (bits[index >>> 3] ?? 0) | (1 << (index & 7));
}

function hasBit(bits: Uint8Array, index: number): boolean {
  return ((bits[index >>> 3] ?? 0) & (1 << (index & 7))) !== 0;
}
