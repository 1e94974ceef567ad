import { isAboutAgentSince } from "../agent-identity.ts";
import { INDEXED } from "./block-index.ts";
import { parsedEntry } from "./parsed-entry.ts";
import type { EntryFilter, StoredEntry } from "./query.ts";

/** Conditions on entries, all of which must be met. They are matched against the entry's own bytes. */
export interface EvidenceFilter extends Omit<EntryFilter, "from" | "to" | "task"> {
  /** A task's id. */
  readonly task?: string | undefined;
}

const FIELDS = [...INDEXED, "task"] as const;

/** Whether an entry's bytes match. */
export type EntryTest = (entry: Pick<StoredEntry, "bytes">) => boolean;

/**
 * Entries are canonical JSON, so a field and its value can be found as text. Only entries with a hit are parsed,
 * which takes ten times as long. Few of these lack the field (`detail` may have a field of the same name).
 */
export function entryTest(filter: EvidenceFilter): EntryTest {
  const wanted = FIELDS.flatMap((field) => {
    const given = filter[field];
    const value = typeof given === "string" ? given.toWellFormed() : given;
    return value === undefined ? [] : [{ field, value, text: `"${field}":${JSON.stringify(value)}` }];
  });
  const { agentSince, outsideTasks } = filter;
  const isAny = wanted.length === 0 && !filter.oversight && !outsideTasks;
  if (isAny && agentSince === undefined) return () => true;
  return ({ bytes }) => {
    if (!wanted.every(({ text }) => bytes.includes(text))) return false;
    if (filter.oversight && !bytes.includes('"oversight":')) return false;
    const entry = parsedEntry(bytes);
    if (filter.oversight && entry.oversight === undefined) return false;
    if (outsideTasks && entry.task !== undefined) return false;
    if (agentSince !== undefined && !isAboutAgentSince(entry, agentSince)) return false;
    return wanted.every(({ field, value }) => entry[field] === value);
  };
}
