import { entryTest } from "../../entry-filter.ts";
import type { StoredEntry } from "../../query.ts";
import { type EntryFields, readEntryFields } from "../format/entry.ts";

/** A token that let somebody oversee agents in the time of a report, as its entries say. */
export interface Overseer {
  readonly token: string;
  readonly name: string | null;
  readonly person: string | null;
  readonly role: string | null;
  readonly agent: string | null;
  readonly scopes: readonly string[];
  /** The entry that issued it. */
  readonly seq: number;
  readonly issuedAt: string;
  readonly issuedBy: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly rotations: number;
}

export interface Overseers {
  /** Whoever takes the bundle away may not see the workspace's tokens: nothing can be said of them. */
  readonly isWithheld: boolean;
  /** Those that can decide, stop and let work again: people first, then in the order of issue. */
  readonly tokens: readonly Overseer[];
  /** More of them, past the cap. */
  readonly more: number;
  /** Tokens with such scopes that act as an agent: they are refused when they decide, override, stop or let work again. */
  readonly agentTokens: readonly Overseer[];
  readonly moreAgentTokens: number;
  /** Different people that `tokens`, those past the cap as well, name as their holders. */
  readonly people: number;
  /** Who holds which token, by its id: of all that were ever issued. */
  readonly holders: ReadonlyMap<string, Holder>;
  /** Tokens that could be used in that time and cannot decide. */
  readonly others: number;
  /** Tokens that were issued past those that a report looks at: what they may do is in their entries alone. */
  readonly unread: number;
}

/** For a bundle that an agent's token takes away. */
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

/** As the entry that issued the token names them. */
export type Holder = Pick<Overseer, "name" | "person" | "role" | "agent">;

/** Scopes that let a token decide and stop. */
const DECIDING = ["admin", "approvals:write"];
/** Tokens that are kept in memory at most. */
const TOKENS = 5_000;
/** Of which the report shows so many. */
const SHOWN = 150;

interface Known extends Overseer {
  readonly isDeciding: boolean;
}

type Mutable<T> = { -readonly [field in keyof T]: T[field] };

const isIssue = entryTest({ action: "token.issue" });
const isRotation = entryTest({ action: "token.rotate" });
const isRevocation = entryTest({ action: "token.revoke" });

/**
 * Who could oversee, as the entries up to one say it, which may lie before the time of the report. A token's issue comes before
 * whatever else is said of it.
 */
export class OverseerRegister {
  readonly #upTo: number;
  readonly #known = new Map<string, Mutable<Known>>();
  #unread = 0;

  constructor(upTo: number) {
    this.#upTo = upTo;
  }

  /** MUST be told of each entry, in order. */
  add({ seq, bytes }: Pick<StoredEntry, "seq" | "bytes">): void {
    if (seq > this.#upTo) return;
    if (isIssue({ bytes })) this.#issue(succeeded(bytes));
    else if (isRotation({ bytes })) this.#rotate(succeeded(bytes));
    else if (isRevocation({ bytes })) this.#revoke(succeeded(bytes));
  }

  /** Those that could be used at some time from then on. */
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
      people: new Set(deciding.flatMap(({ person }) => (person === null ? [] : [sameName(person)]))).size,
      holders: this.#known,
      others: usable.length - deciding.length - acting.length,
      unread: this.#unread,
    };
  }

  #issue(entry: EntryFields | null): void {
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
      // The desk of approvals, overrides, stops and resumptions refuse every token that acts as an agent.
      isDeciding: entry.agent === undefined && hasDecidingScope(scopes),
    });
  }

  #rotate(entry: EntryFields | null): void {
    const token = this.#known.get(textOf(entry?.detail?.token) ?? "");
    if (token) token.rotations += 1;
  }

  #revoke(entry: EntryFields | null): void {
    const token = this.#known.get(textOf(entry?.detail?.token) ?? "");
    if (token && entry) token.revokedAt ??= entry.ts;
  }
}

function succeeded(bytes: string): EntryFields | null {
  const entry = readEntryFields(bytes);
  return entry?.outcome === "succeeded" ? entry : null;
}

function hasDecidingScope(scopes: readonly string[]): boolean {
  return scopes.some((scope) => DECIDING.includes(scope));
}

/** Two spellings of one name are one person. */
function sameName(person: string): string {
  return person.normalize("NFKC").trim().toLowerCase();
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
