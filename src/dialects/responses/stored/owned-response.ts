import { Problem } from "../../../base/errors.ts";
import type { Db } from "../../../store/db.ts";
import { field, isMembers, parsedOrNothing } from "../../json.ts";
import type { UnansweredEnd } from "../background/open-response.ts";
import { inBackground, unansweredResponse } from "../background/response-forms.ts";
import { finalResponse } from "./final-response.ts";
import type { ResponseRow } from "./rows.ts";
import { type HoldMemory, readText, type StoredText } from "./text-reading.ts";

export interface OwnedResponseParts {
  readonly db: Pick<Db, "get">;
  readonly row: ResponseRow;
  readonly isBackground: boolean;
  readonly request: StoredText;
  /** Null until the response has ended. */
  readonly answer: StoredText | null;
  /** Whether the response ended with an answer, so that it can be continued. */
  readonly isAnswered: boolean;
  /** Where its id is in the request, for errors. */
  readonly path: string | undefined;
}

/**
 * A response that belongs to its caller, as the signed entries prove. Each of its texts is read in its own turn and
 * only when needed: a short answer may have a request of 10 MB.
 */
export class OwnedResponse {
  readonly #parts: OwnedResponseParts;

  constructor(parts: OwnedResponseParts) {
    this.#parts = parts;
  }

  get row(): ResponseRow {
    return this.#parts.row;
  }

  /** The provider's name in the configuration. */
  get provider(): string {
    return providerOf(this.row.model);
  }

  get isBackground(): boolean {
    return this.#parts.isBackground;
  }

  get isAnswered(): boolean {
    return this.#parts.isAnswered;
  }

  /**
   * Its request, parsed.
   * @param hold called with the size of each text before it is read
   * @throws Problem 404 `not_found` if the text was erased or does not match the ledger; whatever `hold` throws
   */
  async readRequest(hold?: HoldMemory): Promise<unknown> {
    return parsedOrNothing(await this.#read(this.#parts.request, hold));
  }

  /**
   * The provider's answer, parsed. It proves that the response has this id, unless the id is Gatehouse's own: the
   * entry then contains it.
   * @throws as `readRequest`; also if there is no answer
   */
  async readAnswer(hold?: HoldMemory): Promise<unknown> {
    const { answer, isBackground, row, path } = this.#parts;
    if (!answer) throw unknownResponse(row.id, path);
    const response = finalResponse(await this.#read(answer, hold));
    if (!isBackground && field(response, "id") !== row.id) throw unknownResponse(row.id, path);
    return response;
  }

  /** The response as its client reads it. @throws as `readRequest` */
  async readResponse(hold?: HoldMemory): Promise<unknown> {
    const { answer, isBackground, row } = this.#parts;
    if (!isBackground) return this.readAnswer(hold);
    const request = await this.readRequest(hold);
    if (!answer) {
      const status = row.attempts === 0 ? "queued" : "in_progress";
      return unansweredResponse(request, row, { status, error: null });
    }
    const response = await this.readAnswer(hold);
    if (!isMembers(response)) return response;
    // For a response without an answer, only its final state is stored.
    if (!this.isAnswered) return unansweredResponse(request, row, response as unknown as UnansweredEnd);
    return inBackground(response, request, row);
  }

  async #read(text: StoredText, hold: HoldMemory | undefined): Promise<string> {
    const { db, row, path } = this.#parts;
    const read = await readText(db, text, hold);
    if (read === undefined) throw unknownResponse(row.id, path);
    return read;
  }
}

/** The name of a model's provider. */
export function providerOf(model: string): string {
  return model.slice(0, model.indexOf("/"));
}

/** @param path where the id is in the request */
export function unknownResponse(id: string, path: string | undefined): Problem {
  const shown = JSON.stringify(id.slice(0, 128));
  const message = "must be the id of a response that this caller made and that is still stored";
  const errors = path === undefined ? {} : { errors: [{ path, message }] };
  return new Problem(
    "not_found",
    `There is no response ${shown} of this caller, or it is not stored.`,
    errors,
  );
}
