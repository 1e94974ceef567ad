import type { EntryDraft } from "../../ledger/entry.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Db, Tx } from "../../store/db.ts";

/** The erasure of all quotes of a deleted document from tasks and calls. Stored until it is complete. */
export interface DocumentErasure {
  readonly workspaceId: number;
  readonly document: string;
  readonly actor: string;
  readonly requestId: string;
  /**
   * The entry of the deletion. Only tasks and calls begun before it are erased, so a note that someone restores
   * erases nothing of a later document with the same id. Undefined in notes from earlier versions.
   */
  readonly deletionSeq?: number;
  /**
   * Tasks that had begun by the time of the deletion, including those waiting for a person or to be resumed. They may
   * have read the document, and may quote it until they end.
   */
  readonly running: readonly string[];
  /** Tasks that quote it and whose continuing tasks have not been determined yet. */
  readonly quoting?: readonly string[];
  /** Tasks that continue the conversation of one that quotes it. They are erased as a whole. */
  readonly continuing?: readonly string[];
  /**
   * Clients' requests in flight whose prompts quote the document. Their answers are erased as they arrive; by then,
   * only this note shows that they quote it. Bounded, because a workspace has a limited number of calls in flight.
   */
  readonly requests?: readonly string[];
}

interface NoteRow {
  readonly key: string;
  readonly value: string;
  readonly seal: Uint8Array | null;
}

const PREFIX = "quoted/";

function keyOf({ workspaceId, document, requestId }: Omit<DocumentErasure, "running">): string {
  return `${PREFIX}${workspaceId}/${document}/${requestId}`;
}

/** The erasures that an earlier process did not complete. */
export async function storedErasures(db: Db): Promise<readonly DocumentErasure[]> {
  const rows = await db.all<NoteRow>(
    "SELECT key, value, seal FROM meta WHERE key >= $1 AND key < $2 ORDER BY key",
    [PREFIX, `${PREFIX}~`],
  );
  // Only sealed notes are executed: erased texts are lost, and the erasure is recorded as somebody's request.
  return rows
    .filter((row) => db.seals.fits("meta", row))
    .map(({ value }) => JSON.parse(value) as DocumentErasure);
}

/** An erasure in progress, with its note in the store. */
export class ErasureNote {
  readonly erasure: DocumentErasure;
  /** Set when the erasure has failed. A later attempt continues from the stored note, so this one MUST stop. */
  isAbandoned = false;
  readonly #db: Db;
  readonly #quoting: Set<string>;
  readonly #continuing: Set<string>;
  #requests: ReadonlySet<string>;

  constructor(db: Db, erasure: DocumentErasure) {
    this.#db = db;
    this.erasure = erasure;
    this.#quoting = new Set(erasure.quoting);
    this.#continuing = new Set(erasure.continuing);
    this.#requests = new Set(erasure.requests);
  }

  get key(): string {
    return keyOf(this.erasure);
  }

  get quoting(): readonly string[] {
    return [...this.#quoting];
  }

  get continuing(): readonly string[] {
    return [...this.#continuing];
  }

  get requests(): readonly string[] {
    return [...this.#requests];
  }

  /** Stores a new note. */
  async begin(tx: Tx): Promise<void> {
    const note = this.#row();
    tx.write("INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)", [
      note.key,
      note.value,
      tx.seals.of("meta", note),
    ]);
  }

  /** Notes tasks that quote the document. MUST precede the erasure of what shows it. */
  async addQuoting(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    for (const id of ids) this.#quoting.add(id);
    await this.#save();
  }

  /** Replaces an erased task by the tasks that continue its conversation. */
  async replace(id: string, continuing: readonly string[]): Promise<void> {
    this.#quoting.delete(id);
    this.#continuing.delete(id);
    for (const each of continuing) this.#continuing.add(each);
    await this.#save();
  }

  /** Notes the requests in flight that quote the document. MUST precede the erasure of their prompts. */
  async setRequests(ids: ReadonlySet<string>): Promise<void> {
    const { requests } = this;
    if (ids.size === requests.length && requests.every((id) => ids.has(id))) return;
    this.#requests = ids;
    await this.#save();
  }

  async done(): Promise<void> {
    await this.#db.run("DELETE FROM meta WHERE key = $1", [this.key]);
  }

  async #save(): Promise<void> {
    const note = this.#row();
    await this.#db.run("UPDATE meta SET value = $2, seal = $3 WHERE key = $1", [
      note.key,
      note.value,
      this.#db.seals.of("meta", note),
    ]);
  }

  #row(): { readonly key: string; readonly value: string } {
    const { quoting, continuing, requests } = this;
    return { key: this.key, value: JSON.stringify({ ...this.erasure, quoting, continuing, requests }) };
  }
}

/** The entry of the deletion, for a note that does not name it. 0 if it does not exist. */
export async function findDeletion(
  lists: Pick<LedgerLists, "read">,
  { workspaceId, requestId }: DocumentErasure,
): Promise<number> {
  const all = { first: 1, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
  for await (const entries of lists.read(workspaceId, { action: "vault.delete" }, all)) {
    const found = entries.find(({ bytes }) => parsedEntry(bytes).request_id === requestId);
    if (found) return found.seq;
  }
  return 0;
}

/** The entry about an erasure of quotes. */
export function draftOf({ actor, requestId }: DocumentErasure, outcome: "succeeded" | "pending"): EntryDraft {
  return { phase: "single", action: "payload.erase", outcome, channel: "system", actor, requestId };
}
