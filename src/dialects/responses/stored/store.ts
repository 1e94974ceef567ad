import type { Agent } from "../../../access/agents.ts";
import { Problem } from "../../../base/errors.ts";
import { isHashOf } from "../../../ledger/payload.ts";
import type { LedgerLists } from "../../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import type { Db } from "../../../store/db.ts";
import { field, isMembers, parsedOrNothing } from "../../json.ts";
import { inBackground, unansweredResponse } from "../background/forms.ts";
import { finalResponse } from "./final-response.ts";
import { findResponse, isResponseId, type ResponseRow, responseOfItem } from "./rows.ts";

/** The caller whose responses are read. */
export interface ResponseOwner {
  readonly workspaceId: number;
  readonly agent: Pick<Agent, "id" | "name"> | null;
}

/** A response and its request, both parsed. */
export interface StoredResponse {
  readonly row: ResponseRow;
  /** The provider's name in the configuration. */
  readonly provider: string;
  readonly request: unknown;
  readonly response: unknown;
  /** Whether it ended with an answer, so that it can be continued. */
  readonly isAnswered: boolean;
}

/** The entry that dispatched a response in the background. */
export interface DispatchEntry {
  readonly entry: ParsedEntry;
  /** The response's id. */
  readonly id: string;
}

export interface ResponseStoreParts {
  readonly db: Db;
  readonly lists: Pick<LedgerLists, "entry">;
}

/**
 * Stored responses. Each belongs to its workspace and to the agent that the call was made as. The rows only lead to
 * the entries: the signed ledger decides who owns a response and what it contains.
 */
export class ResponseStore {
  readonly #parts: ResponseStoreParts;

  constructor(parts: ResponseStoreParts) {
    this.#parts = parts;
  }

  /**
   * @param path where in the request the id is, for the refusal
   * @param hold called with the bytes of its texts before they are read
   * @throws Problem 404 `not_found`; also if its texts have been erased or have expired; whatever `hold` throws
   */
  async read(
    owner: ResponseOwner,
    id: string,
    path?: string,
    hold?: (bytes: number) => void,
  ): Promise<StoredResponse> {
    const found = isResponseId(id) ? await this.#find(owner, id, hold) : undefined;
    if (!found) throw unknownResponse(id, path);
    return found;
  }

  /** The response that made an item. @throws Problem 404 `not_found` */
  async readByItem(owner: ResponseOwner, item: string, path: string): Promise<StoredResponse> {
    const { workspaceId } = owner;
    const id = isResponseId(item) ? await responseOfItem(this.#parts.db, workspaceId, item) : undefined;
    const found = id === undefined ? undefined : await this.#find(owner, id);
    if (!found || !itemOf(found, item)) throw unknownResponse(item, path);
    return found;
  }

  /** Undefined if the entry dispatched no response. @throws LedgerChanged */
  async readDispatch(workspaceId: number, seq: number): Promise<DispatchEntry | undefined> {
    const entry = await this.#entry(workspaceId, seq);
    const id = entry.detail?.response;
    if (entry.action !== "response.dispatch" || entry.phase !== "intent" || !isResponseId(id))
      return undefined;
    return { entry, id };
  }

  /** The request that an entry dispatched. Undefined if it was erased, or does not match the ledger. */
  requestOf(workspaceId: number, seq: number, entry: ParsedEntry): Promise<string | undefined> {
    return this.#text(workspaceId, seq, "input", entry.input_hash);
  }

  async #find(
    { workspaceId, agent }: ResponseOwner,
    id: string,
    hold?: (bytes: number) => void,
  ): Promise<StoredResponse | undefined> {
    const row = await findResponse(this.#parts.db, workspaceId, id);
    if (!row || row.agentId !== (agent?.id ?? null)) return undefined;
    const asked = await this.#entry(workspaceId, row.requestSeq);
    const isBackground = asked.action === "response.dispatch";
    if (isBackground && (asked.detail?.response !== id || asked.agent !== agent?.name)) return undefined;
    hold?.(await this.#bytesOf(workspaceId, row));
    const request = await this.#text(workspaceId, row.requestSeq, "input", asked.input_hash);
    if (request === undefined) return undefined;
    const found = { row, provider: providerOf(row.model), request: parsedOrNothing(request) };
    if (isBackground && row.outcomeSeq === 0) {
      const status = row.attempts === 0 ? "queued" : "in_progress";
      const response = unansweredResponse(found.request, row, { status, error: null });
      return { ...found, response, isAnswered: false };
    }
    const answered = await this.#entry(workspaceId, row.outcomeSeq);
    const isEnd = answered.action === "response.dispatch" && answered.ref === row.requestSeq;
    if (!isAnswerTo(asked, answered, agent?.name) || !(isEnd || answered.model === row.model))
      return undefined;
    const text = await this.#text(workspaceId, row.outcomeSeq, "output", answered.output_hash);
    if (text === undefined) return undefined;
    const final = finalResponse(text);
    if (!isBackground && field(final, "id") !== id) return undefined;
    const response = isBackground && isMembers(final) ? inBackground(final, found.request, row) : final;
    return { ...found, response, isAnswered: !isEnd };
  }

  async #entry(workspaceId: number, seq: number): Promise<ParsedEntry> {
    const entry = await this.#parts.lists.entry(workspaceId, seq);
    const parsed = entry ? parsedEntry(entry.bytes) : {};
    return parsed.action === "model.call" || parsed.action === "response.dispatch" ? parsed : {};
  }

  async #bytesOf(workspaceId: number, { requestSeq, outcomeSeq }: ResponseRow): Promise<number> {
    const row = await this.#parts.db.get<{ bytes: number | null }>(
      `SELECT SUM(octet_length(body)) AS bytes FROM payloads
       WHERE workspace_id = $1 AND ((seq = $2 AND kind = 'input') OR (seq = $3 AND kind = 'output'))`,
      [workspaceId, requestSeq, outcomeSeq],
    );
    return row?.bytes ?? 0;
  }

  /** Undefined if the text was erased, or does not match the ledger. */
  async #text(
    workspaceId: number,
    seq: number,
    kind: "input" | "output",
    hash: string | undefined,
  ): Promise<string | undefined> {
    const row = await this.#parts.db.get<{ salt: Uint8Array; body: string }>(
      "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
      [workspaceId, seq, kind],
    );
    return row && isHashOf(hash, row.salt, row.body) ? row.body : undefined;
  }
}

/** Whether the ledger proves that an outcome belongs to a request. */
function isAnswerTo(asked: ParsedEntry, answered: ParsedEntry, agent: string | undefined): boolean {
  return (
    answered.phase === "outcome" &&
    answered.detail?.dialect === "responses" &&
    answered.request_id === asked.request_id &&
    answered.agent === agent
  );
}

/** The name of a model's provider. */
export function providerOf(model: string): string {
  return model.slice(0, model.indexOf("/"));
}

/** The item of a response's output with this id. */
export function itemOf({ response }: StoredResponse, id: string): unknown {
  const output = field(response, "output");
  return Array.isArray(output) ? output.find((item) => field(item, "id") === id) : undefined;
}

function unknownResponse(id: string, path: string | undefined): Problem {
  const shown = JSON.stringify(id.slice(0, 128));
  const message = "must be the id of a response that this caller made and that is still stored";
  const errors = path === undefined ? {} : { errors: [{ path, message }] };
  return new Problem(
    "not_found",
    `There is no response ${shown} of this caller, or it is not stored.`,
    errors,
  );
}
