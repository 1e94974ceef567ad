import type { Agents } from "../../access/agents.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Call } from "../../gate/call.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import { callingAgent } from "../calling-agent.ts";
import type { ClientRequest, ModelAnswer, ModelCalls } from "../model-calls.ts";
import { type ReadResponsesRequest, readResponsesRequest, responsesRequest } from "./request.ts";
import { RESPONSES } from "./responses.ts";
import { type ResponseLinks, resolveLinks } from "./stored/links.ts";
import type { ResponseStore } from "./stored/store.ts";

export interface ResponseCallsParts {
  readonly modelCalls: Pick<ModelCalls, "run">;
  readonly modelGateway: Pick<ModelGateway, "names">;
  readonly agents: Agents;
  readonly store: ResponseStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** A client's request, and the account for the memory of the texts that it refers to. */
export interface ResponsesClient extends Omit<ClientRequest, "api" | "request"> {
  /** @throws Problem 429 `rate_limited` */
  hold(bytes: number): void;
}

/** Model calls through OpenAI's Responses, which may continue earlier ones. */
export class ResponseCalls {
  readonly #parts: ResponseCallsParts;

  constructor(parts: ResponseCallsParts) {
    this.#parts = parts;
  }

  /**
   * @throws Problem as `ModelCalls.run`; 404 `not_found` if the request refers to anything that does not belong to
   *   its caller
   */
  async run(call: Call, client: ResponsesClient): Promise<ModelAnswer> {
    const { modelCalls } = this.#parts;
    const request = readResponsesRequest(client.bytes, client.value);
    const { previous, references, containers } = request;
    const refers = previous !== null || references.length > 0 || containers.length > 0;
    const resolve = async () =>
      responsesRequest(request, await this.#resolve(call, client, request), this.#parts);
    return modelCalls.run(call, {
      ...{ ...client, api: RESPONSES },
      request: responsesRequest(request, null, this.#parts),
      resolve: refers ? resolve : undefined,
    });
  }

  async #resolve(call: Call, client: ResponsesClient, request: ReadResponsesRequest): Promise<ResponseLinks> {
    const { store, agents, modelGateway, clock } = this.#parts;
    const agent = await callingAgent(agents, call, client.headers);
    const { workspaceId } = call.caller;
    const target = modelGateway.names.resolve(request.model);
    const parts = { store, owner: { workspaceId, agent }, now: clock.now(), target };
    return resolveLinks({ ...parts, hold: (bytes) => client.hold(bytes) }, request);
  }
}
