import { isAboutAgentSince } from "./agent-identity.ts";
import { INDEXED } from "./block-index.ts";
import { parsedEntry } from "./parsed-entry.ts";
import type { StoredEntry } from "./query.ts";

/** What entries are chosen by. All that is given must hold; nothing but an entry's own bytes decides. */
export interface EvidenceFilter {
  readonly agent?: string | undefined;
  /** RFC 3339. When the agent was made that is meant: entries about earlier agents of its name do not match. */
  readonly agentSince?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly tier?: number | undefined;
  /** The id of a task. */
  readonly task?: string | undefined;
  /** Only those in which a person had a hand. */
  readonly oversight?: true | undefined;
}

const FIELDS = [...INDEXED, "task"] as const;

/** Whether an entry's bytes match. */
export type EntryTest = (entry: Pick<StoredEntry, "bytes">) => boolean;

/**
 * Entries are canonical JSON, so a field with a value is found in them as text. Few that have the text do not have the field
 * (`detail` may have one of the same name): only those that have it are parsed, which is ten times the work.
 */
export function entryTest(filter: EvidenceFilter): EntryTest {
  const wanted = FIELDS.flatMap((field) => {
    const given = filter[field];
    const value = typeof given === "string" ? given.toWellFormed() : given;
    return value === undefined ? [] : [{ field, value, text: `"${field}":${JSON.stringify(value)}` }];
  });
  const { agentSince } = filter;
  if (wanted.length === 0 && !filter.oversight && agentSince === undefined) return () => true;
  return ({ bytes }) => {
    if (!wanted.every(({ text }) => bytes.includes(text))) return false;
    if (filter.oversight && !bytes.includes('"oversight":')) return false;
    const entry = parsedEntry(bytes);
    if (filter.oversight && entry.oversight === undefined) return false;
    if (agentSince !== undefined && !isAboutAgentSince(entry, agentSince)) return false;
    return wanted.every(({ field, value }) => entry[field] === value);
  };
}
