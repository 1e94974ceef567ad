import type { Agents } from "../../../access/agents.ts";
import { hasScope } from "../../../access/scopes.ts";
import type { Clock } from "../../../base/clock.ts";
import { Problem } from "../../../base/errors.ts";
import type { Call } from "../../../gate/call.ts";
import type { PayloadEraser } from "../../../tasks/texts/erase.ts";
import { forgetResponse } from "../../../tasks/texts/kept-responses.ts";
import { callingAgent } from "../../calling-agent.ts";
import { field } from "../../json.ts";
import { referencesOf } from "../references.ts";
import { type InputItemPage, type InputItemQuery, inputItemPage } from "./input-items.ts";
import { inputItemsOf, resolveLinks } from "./links.ts";
import type { ResponseOwner, ResponseStore } from "./store.ts";

export interface StoredResponsesParts {
  readonly store: ResponseStore;
  readonly agents: Agents;
  readonly eraser: Pick<PayloadEraser, "erase">;
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
    const owner = await this.#owner(call, headers);
    const { response } = await this.#parts.store.read(owner, id, undefined, hold);
    return response as object;
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
    const { store, eraser } = this.#parts;
    const owner = await this.#owner(call, headers);
    const { row } = await store.read(owner, id);
    const { agent, scopes } = call.caller;
    if (!agent && hasScope(scopes, "settings:write")) {
      call.about({ action: "payload.erase" });
      await eraser.erase(call, row.requestSeq);
      return;
    }
    call.about({ detail: { target_seq: row.requestSeq } });
    await call.commit((tx) => forgetResponse(tx, owner.workspaceId, id));
  }

  /** @throws Problem 404 `not_found`, 400 `unsupported_parameter` */
  async cancel(call: Call, headers: Headers, id: string): Promise<never> {
    await this.#parts.store.read(await this.#owner(call, headers), id);
    throw new Problem("unsupported_parameter", "Only a background response can be cancelled.");
  }

  async #owner(call: Call, headers: Headers): Promise<ResponseOwner> {
    const agent = await callingAgent(this.#parts.agents, call, headers);
    return { workspaceId: call.caller.workspaceId, agent };
  }
}
