import { personKey } from "../../../base/person-key.ts";
import { entryTest } from "../../reading/entry-filter.ts";
import type { StoredEntry } from "../../reading/query.ts";
import { type ReportEntryFields, readEntryFields } from "../format/entry.ts";

/** A token that could be used to oversee agents in the period of a report, according to its entries. */
export interface Overseer {
  readonly token: string;
  readonly name: string | null;
  readonly person: string | null;
  readonly role: string | null;
  readonly agent: string | null;
  readonly scopes: readonly string[];
  /** Seq of the entry that issued it. */
  readonly seq: number;
  readonly issuedAt: string;
  readonly issuedBy: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly rotations: number;
}

export interface Overseers {
  /** Whether the workspace's tokens are hidden from the exporter. If so, the report says nothing about them. */
  readonly isWithheld: boolean;
  /** Tokens that can decide, stop and resume: people's first, then by time of issue. */
  readonly tokens: readonly Overseer[];
  /** Number of further tokens past the cap. */
  readonly more: number;
  /** Tokens with such scopes that act as an agent. They are refused if they decide, override, stop or resume. */
  readonly agentTokens: readonly Overseer[];
  readonly moreAgentTokens: number;
  /** Number of distinct people named as holders of `tokens`, including those past the cap. */
  readonly people: number;
  /** The holder of each token ever issued, by the token's id. */
  readonly holders: ReadonlyMap<string, TokenHolder>;
  /** Number of tokens that were usable in the period but cannot decide. */
  readonly others: number;
  /** Number of tokens past the limit of a report. Only their entries show what they may do. */
  readonly unread: number;
}

/** For a bundle exported with an agent's token. */
export const WITHHELD_OVERSEERS: Overseers = {
  isWithheld: true,
  tokens: [],
  more: 0,
  agentTokens: [],
  moreAgentTokens: 0,
  people: 0,
  holders: new Map(),
  others: 0,
  unread: 0,
};

/** As named in the entry that issued the token. */
export type TokenHolder = Pick<Overseer, "name" | "person" | "role" | "agent">;

/** Scopes that permit deciding and stopping. */
const DECIDING = ["admin", "approvals:write"];
/** Maximum number of tokens kept in memory. */
const TOKENS = 5_000;
/** Maximum number of tokens shown in the report. */
const SHOWN = 150;

interface KnownHolder extends Overseer {
  readonly isDeciding: boolean;
}

type Mutable<T> = { -readonly [field in keyof T]: T[field] };

const isIssue = entryTest({ action: "token.issue" });
const isRotation = entryTest({ action: "token.rotate" });
const isRevocation = entryTest({ action: "token.revoke" });

/**
 * Collects who could oversee, from all entries up to a given one, including entries before the report's period. A
 * token's issue precedes all other entries about it.
 */
export class OverseerRegister {
  readonly #upTo: number;
  readonly #known = new Map<string, Mutable<KnownHolder>>();
  #unread = 0;

  constructor(upTo: number) {
    this.#upTo = upTo;
  }

  /** MUST be called with each entry, in order. */
  add({ seq, bytes }: Pick<StoredEntry, "seq" | "bytes">): void {
    if (seq > this.#upTo) return;
    if (isIssue({ bytes })) this.#issue(succeeded(bytes));
    else if (isRotation({ bytes })) this.#rotate(succeeded(bytes));
    else if (isRevocation({ bytes })) this.#revoke(succeeded(bytes));
  }

  /** Tokens that were usable at some time since `from`. */
  since(from: string | undefined): Overseers {
    const usable = [...this.#known.values()].filter(({ expiresAt, revokedAt }) => {
      const end = [expiresAt, revokedAt].filter((time) => time !== null).sort()[0];
      return from === undefined || end === undefined || end >= from;
    });
    const deciding = usable.filter(({ isDeciding }) => isDeciding);
    const acting = usable.filter(({ agent, scopes }) => agent !== null && hasDecidingScope(scopes));
    const sorted = deciding.sort(
      (a, b) => Number(b.person !== null) - Number(a.person !== null) || a.seq - b.seq,
    );
    return {
      isWithheld: false,
      tokens: sorted.slice(0, SHOWN),
      more: Math.max(0, sorted.length - SHOWN),
      agentTokens: acting.slice(0, SHOWN),
      moreAgentTokens: Math.max(0, acting.length - SHOWN),
      people: new Set(deciding.flatMap(({ person }) => (person === null ? [] : [personKey(person)]))).size,
      holders: this.#known,
      others: usable.length - deciding.length - acting.length,
      unread: this.#unread,
    };
  }

  #issue(entry: ReportEntryFields | null): void {
    const token = textOf(entry?.detail?.token);
    if (entry === null || token === null) return;
    if (this.#known.size >= TOKENS) {
      this.#unread += 1;
      return;
    }
    const scopes = textOf(entry.detail?.scopes)?.split(" ") ?? [];
    this.#known.set(token, {
      token,
      name: textOf(entry.detail?.name),
      person: textOf(entry.detail?.person),
      role: textOf(entry.detail?.role),
      agent: entry.agent ?? null,
      scopes,
      seq: entry.seq,
      issuedAt: entry.ts,
      issuedBy: entry.actor,
      expiresAt: textOf(entry.detail?.expires_at),
      revokedAt: null,
      rotations: 0,
      // Every token that acts as an agent is refused for approvals, overrides, stops and resumptions.
      isDeciding: entry.agent === undefined && hasDecidingScope(scopes),
    });
  }

  #rotate(entry: ReportEntryFields | null): void {
    const token = this.#known.get(textOf(entry?.detail?.token) ?? "");
    if (token) token.rotations += 1;
  }

  #revoke(entry: ReportEntryFields | null): void {
    const token = this.#known.get(textOf(entry?.detail?.token) ?? "");
    if (token && entry) token.revokedAt ??= entry.ts;
  }
}

function succeeded(bytes: string): ReportEntryFields | null {
  const entry = readEntryFields(bytes);
  return entry?.outcome === "succeeded" ? entry : null;
}

function hasDecidingScope(scopes: readonly string[]): boolean {
  return scopes.some((scope) => DECIDING.includes(scope));
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
