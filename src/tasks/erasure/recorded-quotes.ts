import type { Detail } from "../../ledger/entry.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Sql } from "../../store/db.ts";
import { documentsIn, type ErasedLink, provenText, referencesIn, responseIdsIn } from "./response-links.ts";

/** Maximum number of ids in one field of an entry. */
const MOST_IDS = 64;
/**
 * Maximum number of ids of one kind that are recorded. Entries are kept forever, so one text must not add any number
 * of ids to them.
 */
const MOST_RECORDED = 4_096;
/** The ids of responses and of their items. A client may write anything in place of an id. */
const ID = /^[A-Za-z0-9_-]{1,128}$/;

/** The tasks and responses that quoted a document, as recorded when their texts were erased. */
export interface ErasedQuotes {
  readonly tasks: ReadonlySet<string>;
  /** Ids of responses and of their items. */
  readonly responses: readonly string[];
  readonly links: readonly ErasedLink[];
}

interface Reads {
  readonly db: Pick<Sql, "get">;
  readonly lists: Pick<LedgerLists, "entries">;
}

/**
 * What an erasure must record about the texts that it erases: the documents that they contain, and the responses that
 * they are or refer to. Once the texts are gone, only these records show which texts of a continued conversation to
 * erase with one of the documents.
 * @returns the details of the entries; empty if there is nothing to record
 */
export async function quotesIn(
  { db, lists }: Reads,
  workspaceId: number,
  payloads: readonly ErasedPayload[],
): Promise<readonly Detail[]> {
  const documents = new Set<string>();
  const ids = new Set<string>();
  const references = new Set<string>();
  const seqs = payloads.map(({ seq }) => seq);
  const entries = await lists.entries(workspaceId, seqs);
  for (const { seq, kind } of payloads) {
    const entry: ParsedEntry = parsedEntry(entries.get(seq)?.bytes ?? "");
    const isTasks = entry.task !== undefined;
    // A task's input only names documents. The documents that its messages name are recorded when they are sent.
    if (isTasks && kind === "input") continue;
    const hash = kind === "input" ? entry.input_hash : entry.output_hash;
    const text = (await provenText(db, { workspaceId, seq, kind }, hash)) ?? "";
    for (const id of documentsIn(text)) documents.add(id);
    if (isTasks || entry.detail?.dialect !== "responses") continue;
    // A background response has a different id from its provider's answer.
    const { response } = entry.detail;
    if (typeof response === "string") ids.add(response);
    if (kind === "output") for (const id of responseIdsIn(text)) ids.add(id);
    else for (const id of referencesIn(text).ids) references.add(id);
  }
  return detailsOf([...documents], [...ids].filter(isId), [...references].filter(isId));
}

/**
 * Splits the ids over as many details as they need. Each detail repeats the response's own id, which comes first and
 * shows that the details belong together.
 */
function detailsOf(
  documents: readonly string[],
  [own, ...items]: readonly string[],
  references: readonly string[],
): readonly Detail[] {
  const lists = own === undefined ? { documents } : { documents, items, references };
  const most = Math.max(...Object.values(lists).map((ids) => ids.length));
  const count = Math.max(Math.ceil(Math.min(most, MOST_RECORDED) / MOST_IDS), own === undefined ? 0 : 1);
  return Array.from({ length: count }, (_, part) => {
    const partOf = (ids: readonly string[] = []) => ids.slice(part * MOST_IDS, (part + 1) * MOST_IDS);
    return {
      ...namesOf("documents", partOf(documents)),
      ...namesOf("responses", own === undefined ? [] : [own, ...partOf(lists.items)]),
      ...namesOf("references", partOf(lists.references)),
      ...(most > MOST_RECORDED ? { more: 1 } : {}),
    };
  });
}

function namesOf(name: string, ids: readonly string[]): Detail {
  return ids.length === 0 ? {} : { [name]: ids.join(" ") };
}

function isId(id: string): boolean {
  return ID.test(id);
}

/** Finds the tasks and responses that quoted a document and whose erasure was requested before an entry. */
export async function erasedQuotes(
  lists: Pick<LedgerLists, "read">,
  { workspaceId, document, before }: { workspaceId: number; document: string; before: number },
): Promise<ErasedQuotes> {
  const tasks = new Set<string>();
  const responses = new Set<string>();
  const links: ErasedLink[] = [];
  const span = { first: 1, last: before - 1, order: "asc" } as const;
  if (span.last < span.first) return { tasks, responses: [], links };
  for await (const entries of lists.read(workspaceId, { action: "payload.erase" }, span)) {
    for (const { bytes } of entries) {
      const { task, detail } = parsedEntry(bytes);
      const ids = namesIn(detail?.responses);
      const [own, ...items] = ids;
      if (own !== undefined) links.push({ ids, references: namesIn(detail?.references) });
      if (own !== undefined && items.length > 0) links.push({ ids: items, references: [own] });
      // If not all of its documents are recorded, it may have quoted any.
      if (detail?.more !== 1 && !namesIn(detail?.documents).includes(document)) continue;
      if (task !== undefined) tasks.add(task);
      for (const id of ids) responses.add(id);
    }
  }
  return { tasks, responses: [...responses], links };
}

function namesIn(names: unknown): readonly string[] {
  return typeof names === "string" && names !== "" ? names.split(" ") : [];
}
