import type { Agent } from "../../../access/agents.ts";
import { timestamp } from "../../../base/clock.ts";
import type { LedgerHistories } from "../../../gate/ledger-histories.ts";
import { isAboutAgentSince } from "../../../ledger/agent-identity.ts";
import type { LedgerLists } from "../../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import type { Db } from "../../../store/db.ts";
import { OwnedResponse, unknownResponse } from "./owned-response.ts";
import { findResponse, isResponseId, type ResponseRow, responseOfItem } from "./rows.ts";
import { readText, type StoredText, takeFindTurn } from "./text-reading.ts";

/** The caller whose responses are read. */
export interface ResponseOwner {
  readonly workspaceId: number;
  readonly agent: Pick<Agent, "id" | "name" | "createdAt"> | null;
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
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
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
   * Finds a response by its row and its entries. Does not read its texts, which may have been erased.
   * @param path where the id is in the request, for errors
   * @throws Problem 404 `not_found`
   */
  async find(owner: ResponseOwner, id: string, path?: string): Promise<OwnedResponse> {
    const found = isResponseId(id) ? await this.#find(owner, id, path) : undefined;
    if (!found) throw unknownResponse(id, path);
    return found;
  }

  /**
   * The response that made an item, according to the item's row. Only the response's answer proves that.
   * @throws as `find`
   */
  async findByItem(owner: ResponseOwner, item: string, path: string): Promise<OwnedResponse> {
    const { workspaceId } = owner;
    await takeFindTurn(workspaceId);
    const id = isResponseId(item) ? await responseOfItem(this.#parts.db, workspaceId, item) : undefined;
    const found = id === undefined ? undefined : await this.#find(owner, id, path);
    if (!found) throw unknownResponse(item, path);
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

  /** The bytes of the request that an entry dispatched; 0 if the request was erased. */
  async requestBytes(workspaceId: number, seq: number): Promise<number> {
    const row = await this.#parts.db.get<{ bytes: number }>(
      "SELECT octet_length(body) AS bytes FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = 'input'",
      [workspaceId, seq],
    );
    return row?.bytes ?? 0;
  }

  /** The request that an entry dispatched. Undefined if the request was erased, or does not match the ledger. */
  requestOf(workspaceId: number, seq: number, entry: ParsedEntry): Promise<string | undefined> {
    return readText(this.#parts.db, requestText(workspaceId, seq, entry), undefined);
  }

  async #find(
    { workspaceId, agent }: ResponseOwner,
    id: string,
    path: string | undefined,
  ): Promise<OwnedResponse | undefined> {
    const { db } = this.#parts;
    await takeFindTurn(workspaceId);
    const row = await findResponse(db, workspaceId, id);
    if (!row || row.agentId !== (agent?.id ?? null)) return undefined;
    const asked = await this.#entry(workspaceId, row.requestSeq);
    if (!isOf(asked, agent)) return undefined;
    const isBackground = asked.action === "response.dispatch";
    if (isBackground && asked.detail?.response !== id) return undefined;
    const request = requestText(workspaceId, row.requestSeq, asked);
    const found = { db, row, isBackground, request, path };
    if (isBackground && row.outcomeSeq === 0) {
      if (await this.#isOpen(workspaceId, row.requestSeq))
        return new OwnedResponse({ ...found, answer: null, isAnswered: false });
      // It has just ended, or its row was changed.
      const ended = await findResponse(db, workspaceId, id);
      return ended && ended.outcomeSeq > 0 ? this.#find({ workspaceId, agent }, id, path) : undefined;
    }
    const answered = await this.#entry(workspaceId, row.outcomeSeq);
    const isEnd = isEndOf(row, answered);
    if (!isAnswerTo(asked, answered) || !(isEnd || answered.model === row.model)) return undefined;
    const { output_hash: hash } = answered;
    const answer = { workspaceId, seq: row.outcomeSeq, kind: "output", hash } as const;
    return new OwnedResponse({ ...found, answer, isAnswered: !isEnd });
  }

  /** Another node may have dispatched it a moment ago. */
  async #isOpen(workspaceId: number, seq: number): Promise<boolean> {
    const { histories } = this.#parts;
    const history = histories.of(workspaceId);
    if (!history.openResponses.has(seq) && !history.covers(seq)) await histories.catchUp(workspaceId);
    return history.openResponses.has(seq);
  }

  async #entry(workspaceId: number, seq: number): Promise<ParsedEntry> {
    const entry = await this.#parts.lists.entry(workspaceId, seq);
    const parsed = entry ? parsedEntry(entry.bytes) : {};
    return parsed.action === "model.call" || parsed.action === "response.dispatch" ? parsed : {};
  }
}

function requestText(workspaceId: number, seq: number, { input_hash: hash }: ParsedEntry): StoredText {
  return { workspaceId, seq, kind: "input", hash };
}

/**
 * Whether an entry's request belongs to this agent, not to a caller without an agent or to an earlier agent with the
 * same name.
 */
function isOf(entry: ParsedEntry, agent: ResponseOwner["agent"]): boolean {
  if (entry.phase !== "intent" || entry.agent !== agent?.name) return false;
  return agent === null || isAboutAgentSince(entry, timestamp(agent.createdAt));
}

/** Whether an entry ended a response in the background without an answer. */
function isEndOf({ requestSeq }: ResponseRow, { action, ref }: ParsedEntry): boolean {
  return action === "response.dispatch" && ref === requestSeq;
}

/** Whether the ledger proves that an outcome belongs to a request. */
function isAnswerTo(asked: ParsedEntry, answered: ParsedEntry): boolean {
  return (
    answered.phase === "outcome" &&
    answered.detail?.dialect === "responses" &&
    answered.request_id === asked.request_id &&
    answered.agent === asked.agent
  );
}
