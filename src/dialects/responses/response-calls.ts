import type { Call } from "../../gate/call.ts";
import type { ModelAnswer } from "../client-request.ts";
import type { ModelCalls } from "../model-calls.ts";
import type { BackgroundResponses, DispatchedResponse } from "./background/service.ts";
import type { ResponseRequests, ResponsesClient } from "./prepare-request.ts";
import { readResponsesRequest } from "./request.ts";

export interface ResponseCallsParts {
  readonly modelCalls: Pick<ModelCalls, "run">;
  readonly requests: ResponseRequests;
  readonly background: Pick<BackgroundResponses, "dispatch">;
}

/** Model calls through OpenAI's Responses. */
export class ResponseCalls {
  readonly #parts: ResponseCallsParts;

  constructor(parts: ResponseCallsParts) {
    this.#parts = parts;
  }

  /**
   * @throws Problem as `ModelCalls.run`; 404 `not_found` if the request refers to anything that does not belong to
   *   its caller; 429 `queue_full`
   */
  async run(call: Call, client: ResponsesClient): Promise<ModelAnswer | DispatchedResponse> {
    const { modelCalls, requests, background } = this.#parts;
    const request = readResponsesRequest(client.bytes, client.value);
    if (request.isBackground) return background.dispatch(call, client, request);
    return modelCalls.run(call, requests.prepare(call, client, request));
  }
}
