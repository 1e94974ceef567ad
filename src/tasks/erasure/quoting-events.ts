import { endOfQuoted } from "../../base/json-limits.ts";
import { ownText } from "../../base/own-text.ts";
import type { Db } from "../../store/db.ts";
import { framesAfter } from "../events/frames.ts";
import { findBlock, RESPONSE_EVENTS, readBlock } from "../events/store.ts";
import type { TaskSignals } from "../signals.ts";
import type { QuotedDocument } from "./find-quotes.ts";
import { isErased } from "./response-events.ts";
import { eraseResponseEvents } from "./stored-responses.ts";

export interface QuotingEventsParts {
  readonly db: Db;
  readonly signals: Pick<TaskSignals, "responsesErased">;
}

/** How many ids of responses are read at once. */
const IDS_AT_ONCE = 64;
const NOTHING = new Uint8Array();

/**
 * Erases the stored events of responses that quote a document. The events are searched themselves, because an attempt
 * that ended with its process has left no other text.
 */
export class QuotingEvents {
  readonly #parts: QuotingEventsParts;
  readonly #subject: QuotedDocument;
  readonly #before: number;
  /** The responses that had not ended at the last pass. Null before the first. */
  #open: ReadonlySet<string> | null = null;

  /** @param before only responses to requests in earlier entries */
  constructor(parts: QuotingEventsParts, subject: QuotedDocument, before: number) {
    this.#parts = parts;
    this.#subject = subject;
    this.#before = before;
  }

  /**
   * Erases the events that quote the document. Later passes search only responses that have ended since the last one.
   * @returns whether it erased anything
   */
  async erase(isStopped: () => boolean): Promise<boolean> {
    const { db, signals } = this.#parts;
    const { workspaceId } = this.#subject;
    const last = this.#open;
    this.#open = await this.#openNow();
    let hasErased = false;
    for await (const id of last ? ended(last, this.#open) : this.#all()) {
      if (isStopped()) break;
      if (!(await this.#quotes(id, last !== null, isStopped))) continue;
      await db.tx(null, (tx) => eraseResponseEvents(tx, workspaceId, [id], signals.responsesErased), {
        turnOf: workspaceId,
      });
      hasErased = true;
    }
    return hasErased;
  }

  async #openNow(): Promise<ReadonlySet<string>> {
    const rows = await this.#parts.db.all<{ id: string }>(
      "SELECT id FROM responses WHERE workspace_id = $1 AND outcome_seq = 0 AND request_seq < $2",
      [this.#subject.workspaceId, this.#before],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** The responses that have events, except those that were requested later. */
  async *#all(): AsyncGenerator<string, void> {
    const { workspaceId } = this.#subject;
    for (let after = ""; ; ) {
      const rows = await this.#parts.db.all<{ id: string; request_seq: number | null }>(
        `SELECT e.id, r.request_seq FROM (
           SELECT DISTINCT response_id AS id FROM response_events
           WHERE workspace_id = $1 AND response_id > $2 ORDER BY response_id LIMIT $3
         ) AS e LEFT JOIN responses AS r ON r.workspace_id = $1 AND r.id = e.id ORDER BY e.id`,
        [workspaceId, after, IDS_AT_ONCE],
      );
      for (const { id, request_seq: seq } of rows) if ((seq ?? 0) < this.#before) yield id;
      const end = rows.at(-1);
      if (!end) return;
      after = end.id;
    }
  }

  /**
   * Whether the events of a response contain the document's id.
   * @param hasEnded it ended after the last pass. If events of it were erased by then, open streams still have the later
   *   ones
   */
  async #quotes(id: string, hasEnded: boolean, isStopped: () => boolean): Promise<boolean> {
    const { db } = this.#parts;
    const { workspaceId, document } = this.#subject;
    const text = new StreamedText(document);
    for (let after = 0; !isStopped(); ) {
      const block = await findBlock(db, workspaceId, id, after, RESPONSE_EVENTS);
      if (!block) return false;
      if (hasEnded && isErased(block)) return true;
      const frames = block.frames ?? (await readBlock(db, workspaceId, id, block.firstId, RESPONSE_EVENTS));
      if (text.hasFound(Buffer.from(framesAfter(frames ?? NOTHING, after)))) return true;
      after = block.lastId;
    }
    return false;
  }
}

function* ended(last: ReadonlySet<string>, open: ReadonlySet<string>): Generator<string, void> {
  for (const id of last) if (!open.has(id)) yield id;
}

/** A part of a streamed text, and the item that it belongs to. Inside texts, quotation marks are escaped. */
const DELTA = '"delta":"';
const ITEM = '"item_id":"';

/** The text of a member in JSON, as it is written there. A regular expression would give up on megabytes. */
function memberIn(json: string, name: string): string | undefined {
  const at = json.indexOf(name);
  if (at < 0) return undefined;
  const start = at + name.length;
  return json.slice(start, endOfQuoted(json, start));
}

/** Searches events for a word, which may be divided between the parts of a streamed text. */
class StreamedText {
  readonly #word: string;
  /** The end of what has been streamed of each item. */
  readonly #ends = new Map<string, string>();

  constructor(word: string) {
    this.#word = word;
  }

  /** @param frames the next events, in the form written by `encodeNamed` */
  hasFound(frames: Buffer): boolean {
    if (frames.includes(this.#word)) return true;
    if (!frames.includes(DELTA)) return false;
    return frames
      .toString()
      .split("\n\n")
      .some((frame) => this.#continues(frame));
  }

  #continues(frame: string): boolean {
    const delta = memberIn(frame, DELTA);
    if (delta === undefined) return false;
    const item = memberIn(frame, ITEM) ?? "";
    const text = (this.#ends.get(item) ?? "") + delta;
    this.#ends.set(ownText(item), ownText(text.slice(-(this.#word.length - 1))));
    return text.includes(this.#word);
  }
}
