import type { Agents } from "../../access/agents.ts";
import type { Call } from "../../gate/call.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import type { EventMemory } from "../../tasks/events/stored-events.ts";
import { callingAgent } from "../calling-agent.ts";
import type { ClientRequest } from "../client-request.ts";
import { field } from "../json.ts";
import {
  type KeepingParts,
  type ReadResponsesRequest,
  responsesRequest,
  type StoreAnswer,
} from "./request.ts";
import { RESPONSES } from "./responses.ts";
import { inputItemsOf, type ResponseLinks, resolveLinks } from "./stored/linked-conversation.ts";
import type { ResponseStore } from "./stored/store.ts";

export interface ResponseRequestsParts extends KeepingParts {
  readonly modelGateway: Pick<ModelGateway, "names">;
  readonly agents: Agents;
  readonly store: ResponseStore;
}

/** A client's request, with the functions that reserve memory for the text that it refers to. */
export interface ResponsesClient extends Omit<ClientRequest, "api" | "request"> {
  /** @throws Problem 429 `rate_limited` */
  hold(bytes: number): void;
  /** For the events of a background response, if they are streamed. */
  readonly memory?: EventMemory | undefined;
}

/** Prepares requests for responses, which may continue earlier ones. */
export class ResponseRequests {
  readonly #parts: ResponseRequestsParts;

  constructor(parts: ResponseRequestsParts) {
    this.#parts = parts;
  }

  /**
   * The request for `ModelCalls`. Resolving it throws 404 `not_found` if it refers to anything that does not belong
   * to its caller.
   */
  prepare(
    call: Call,
    client: ResponsesClient,
    request: ReadResponsesRequest,
    keep?: StoreAnswer,
  ): ClientRequest {
    const { previous, references, containers } = request;
    const refers = previous !== null || references.length > 0 || containers.length > 0;
    const resolve = async () =>
      responsesRequest(request, await this.#resolve(call, client, request), this.#parts, keep);
    return {
      ...{ ...client, api: RESPONSES },
      request: responsesRequest(request, null, this.#parts, keep),
      resolve: refers ? resolve : undefined,
    };
  }

  async #resolve(call: Call, client: ResponsesClient, request: ReadResponsesRequest): Promise<ResponseLinks> {
    const { store, agents, modelGateway, clock } = this.#parts;
    const agent = await callingAgent(agents, call, client.headers);
    const { workspaceId } = call.caller;
    const { names } = modelGateway;
    const target = names.resolve(request.model);
    const providers = target && names.providersOf(target);
    const parts = { store, owner: { workspaceId, agent }, now: clock.now(), providers };
    const input = inputItemsOf(field(request.value, "input"));
    return resolveLinks({ ...parts, hold: (bytes) => client.hold(bytes) }, { ...request, input });
  }
}
