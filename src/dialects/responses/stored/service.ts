import type { Agents } from "../../../access/agents.ts";
import { hasScope } from "../../../access/scopes.ts";
import type { Clock } from "../../../base/clock.ts";
import { Problem } from "../../../base/errors.ts";
import type { Call } from "../../../gate/call.ts";
import type { PayloadEraser } from "../../../tasks/erasure/payload-eraser.ts";
import { forgetResponse } from "../../../tasks/erasure/stored-responses.ts";
import type { EventReader } from "../../../tasks/events/hub.ts";
import type { EventMemory } from "../../../tasks/events/stored-events.ts";
import type { TaskSignals } from "../../../tasks/signals.ts";
import { callingAgent } from "../../calling-agent.ts";
import { field } from "../../json.ts";
import type { BackgroundResponses } from "../background/service.ts";
import { referencesOf } from "../references.ts";
import { type InputItemPage, type InputItemQuery, inputItemPage } from "./input-items.ts";
import { inputItemsOf, resolveLinks } from "./linked-conversation.ts";
import type { OwnedResponse } from "./owned-response.ts";
import { membersOf, memoryOf } from "./size.ts";
import type { ResponseOwner, ResponseStore } from "./store.ts";
import type { HoldMemory } from "./text-reading.ts";

export interface StoredResponsesParts {
  readonly signals: Pick<TaskSignals, "responsesErased">;
  readonly store: ResponseStore;
  readonly agents: Agents;
  readonly eraser: Pick<PayloadEraser, "erase">;
  readonly background: Pick<BackgroundResponses, "read" | "cancel" | "unwritten">;
  readonly clock: Clock;
}

/** How a response is read. */
export interface ResponseReading {
  readonly headers: Headers;
  readonly hold: HoldMemory;
}

interface FoundResponse {
  readonly owner: ResponseOwner;
  readonly response: OwnedResponse;
}

/** What clients can do with stored responses. */
export class StoredResponses {
  readonly #parts: StoredResponsesParts;

  constructor(parts: StoredResponsesParts) {
    this.#parts = parts;
  }

  /** @throws Problem 404 `not_found`, 429 `rate_limited` */
  async get(call: Call, { headers, hold }: ResponseReading, id: string): Promise<object> {
    const { response } = await this.#find(call, headers, id);
    return this.#view(response, hold);
  }

  /**
   * The events after the one with this number, for a background response that was requested as a stream.
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter`, 429 `rate_limited`
   */
  async events(
    call: Call,
    { headers, hold, memory }: ResponseReading & { readonly memory: EventMemory },
    id: string,
    after: number | undefined,
  ): Promise<EventReader> {
    const { owner, response } = await this.#find(call, headers, id);
    // `sequence_number` starts at 0, and event ids at 1.
    const from = after === undefined ? 0 : after + 1;
    return this.#parts.background.read(owner, response, from, { hold, memory });
  }

  /**
   * Leaves out earlier responses of the conversation that are no longer stored, and all responses before them.
   * @throws Problem 404 `not_found`, 413 `body_too_large`, 429 `rate_limited`
   */
  async inputItems(
    call: Call,
    { headers, hold }: ResponseReading,
    id: string,
    query: InputItemQuery,
  ): Promise<InputItemPage> {
    const { store, clock } = this.#parts;
    const { owner, response } = await this.#find(call, headers, id);
    const request = await response.readRequest(hold);
    const input = field(request, "input");
    const items = inputItemsOf(input);
    hold(memoryOf({ bytes: 0, members: membersOf(items) }));
    const previous = field(request, "previous_response_id");
    const links = await resolveLinks(
      { store, owner, now: clock.now(), providers: null, mayMiss: true, hold },
      {
        input: items,
        previous: typeof previous === "string" ? previous : null,
        references: referencesOf(items),
      },
    );
    return inputItemPage(id, input, links, query);
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
    const { row } = await store.find(owner, id);
    if (row.outcomeSeq === 0) {
      // Otherwise, the response's end would be written after the deletion. The cancellation is a decision with its
      // own entry.
      const cancelling = call.again();
      cancelling.about({ action: "response.cancel", detail: { response: id, target_seq: row.requestSeq } });
      await background.cancel(cancelling, id);
    }
    const { agent, scopes } = call.caller;
    if (!agent && hasScope(scopes, "settings:write")) {
      call.about({ action: "payload.erase" });
      await eraser.erase(call, row.requestSeq);
      return;
    }
    call.about({ detail: { target_seq: row.requestSeq } });
    await call.commit((tx) => forgetResponse(tx, owner.workspaceId, id, this.#parts.signals.responsesErased));
  }

  /**
   * Cancels a background response, and returns it. A response that has ended stays as it is.
   * @throws Problem 404 `not_found`, 400 `unsupported_parameter`
   */
  async cancel(call: Call, { headers, hold }: ResponseReading, id: string): Promise<object> {
    const { owner, response } = await this.#find(call, headers, id);
    if (!response.isBackground) {
      throw new Problem("unsupported_parameter", "Only a background response can be cancelled.");
    }
    if (response.row.outcomeSeq > 0) return this.#view(response, hold);
    await this.#parts.background.cancel(call, id);
    // The response is already cancelled, so neither a lack of memory nor an erased text may fail the call.
    return this.#view(await this.#parts.store.find(owner, id)).catch((error: unknown) => {
      if (error instanceof Problem && error.code === "not_found")
        return { id, object: "response", status: "cancelled" };
      throw error;
    });
  }

  async #view(response: OwnedResponse, hold?: HoldMemory): Promise<object> {
    const form = (await response.readResponse(hold)) as object;
    return { ...form, ...this.#parts.background.unwritten(response.row.id) };
  }

  /** Finds the caller's response, and names it in the call's entry. */
  async #find(call: Call, headers: Headers, id: string): Promise<FoundResponse> {
    const owner = await this.#owner(call, headers);
    const response = await this.#parts.store.find(owner, id);
    call.about({ detail: { response: id, target_seq: response.row.requestSeq } });
    return { owner, response };
  }

  async #owner(call: Call, headers: Headers): Promise<ResponseOwner> {
    const agent = await callingAgent(this.#parts.agents, call, headers);
    return { workspaceId: call.caller.workspaceId, agent };
  }
}
