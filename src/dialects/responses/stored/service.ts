import type { Agents } from "../../../access/agents.ts";
import { hasScope } from "../../../access/scopes.ts";
import type { Clock } from "../../../base/clock.ts";
import { Problem } from "../../../base/errors.ts";
import type { Call } from "../../../gate/call.ts";
import type { EventReader } from "../../../tasks/events/hub.ts";
import type { PayloadEraser } from "../../../tasks/texts/erase.ts";
import { forgetResponse } from "../../../tasks/texts/kept-responses.ts";
import { callingAgent } from "../../calling-agent.ts";
import { field } from "../../json.ts";
import type { BackgroundResponses } from "../background/service.ts";
import { referencesOf } from "../references.ts";
import { type InputItemPage, type InputItemQuery, inputItemPage } from "./input-items.ts";
import { inputItemsOf, resolveLinks } from "./links.ts";
import type { ResponseOwner, ResponseStore } from "./store.ts";

export interface StoredResponsesParts {
  readonly store: ResponseStore;
  readonly agents: Agents;
  readonly eraser: Pick<PayloadEraser, "erase">;
  readonly background: Pick<BackgroundResponses, "read" | "cancel" | "end" | "unwritten">;
  readonly clock: Clock;
}

/** Takes memory for texts that are read. @throws Problem 429 `rate_limited` */
export type HoldMemory = (bytes: number) => void;

/** What clients can do with stored responses. */
export class StoredResponses {
  readonly #parts: StoredResponsesParts;

  constructor(parts: StoredResponsesParts) {
    this.#parts = parts;
  }

  /** @throws Problem 404 `not_found`, 429 `rate_limited` */
  async get(call: Call, headers: Headers, id: string, hold: HoldMemory): Promise<object> {
    return this.#view(await this.#owner(call, headers), id, hold);
  }

  /**
   * The events of a response that was made in the background as a stream, after the one with this number.
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter`, 429 `rate_limited`
   */
  async events(
    call: Call,
    { headers, hold }: { readonly headers: Headers; readonly hold: HoldMemory },
    id: string,
    after: number | undefined,
  ): Promise<EventReader> {
    // `sequence_number` begins at 0, and the ids of events at 1.
    const from = after === undefined ? 0 : after + 1;
    return this.#parts.background.read(await this.#owner(call, headers), id, from, hold);
  }

  /**
   * Earlier responses of the conversation that are no longer stored are left out, with those before them.
   * @throws Problem 404 `not_found`, 413 `body_too_large`, 429 `rate_limited`
   */
  async inputItems(
    call: Call,
    { headers, hold }: { readonly headers: Headers; readonly hold: HoldMemory },
    id: string,
    query: InputItemQuery,
  ): Promise<InputItemPage> {
    const { store, clock } = this.#parts;
    const owner = await this.#owner(call, headers);
    const stored = await store.read(owner, id, undefined, hold);
    const previous = field(stored.request, "previous_response_id");
    const references = referencesOf(inputItemsOf(field(stored.request, "input")));
    const links = await resolveLinks(
      { store, owner, now: clock.now(), target: null, mayMiss: true, hold },
      { previous: typeof previous === "string" ? previous : null, references },
    );
    return inputItemPage(stored, links, query);
  }

  /**
   * Deletes a response: it can no longer be read or continued. Its texts are also erased if the caller may erase
   * evidence. A token that acts as an agent may not, since it could otherwise erase the traces of that agent's
   * actions.
   * @throws Problem 404 `not_found`
   */
  async delete(call: Call, headers: Headers, id: string): Promise<void> {
    const { store, eraser, background } = this.#parts;
    const owner = await this.#owner(call, headers);
    const { row } = await store.read(owner, id);
    // The end of a response in progress would be written after the deletion.
    if (row.outcomeSeq === 0) {
      await call.requireRights();
      await background.end(id);
    }
    const { agent, scopes } = call.caller;
    if (!agent && hasScope(scopes, "settings:write")) {
      call.about({ action: "payload.erase" });
      await eraser.erase(call, row.requestSeq);
      return;
    }
    call.about({ detail: { target_seq: row.requestSeq } });
    await call.commit((tx) => forgetResponse(tx, owner.workspaceId, id));
  }

  /**
   * Cancels a response in the background, and returns it. One that has ended stays as it is.
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter`
   */
  async cancel(call: Call, headers: Headers, id: string): Promise<object> {
    const owner = await this.#owner(call, headers);
    const { row } = await this.#parts.store.read(owner, id);
    if (row.attempts === null) {
      throw new Problem("unsupported_parameter", "Only a response in the background can be cancelled.");
    }
    call.about({ detail: { response: id, target_seq: row.requestSeq } });
    await this.#parts.background.cancel(call, id);
    return this.#view(owner, id);
  }

  async #view(owner: ResponseOwner, id: string, hold?: HoldMemory): Promise<object> {
    const { response } = await this.#parts.store.read(owner, id, undefined, hold);
    return this.#parts.background.unwritten(id) ?? (response as object);
  }

  async #owner(call: Call, headers: Headers): Promise<ResponseOwner> {
    const agent = await callingAgent(this.#parts.agents, call, headers);
    return { workspaceId: call.caller.workspaceId, agent };
  }
}
