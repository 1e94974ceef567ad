import { Elysia } from "elysia";
import { Problem } from "../../base/errors.ts";
import type { PayloadEraser } from "../../tasks/texts/erase.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { isSeq } from "../ledger/entry.ts";

export interface PayloadRouteParts {
  readonly eraser: PayloadEraser;
}

/** Prompts, outputs and arguments, which are stored apart from the entries that prove them. */
export function payloadRoutes(endpoints: EndpointContext, { eraser }: PayloadRouteParts) {
  const erase = endpoint(
    endpoints,
    {
      action: "payload.erase",
      scope: "settings:write",
      summary:
        "Erase the prompt, output and arguments of an entry, or of a whole task if the entry dispatched it. " +
        "The proofs stay valid",
      tag: "Ledger",
      slow: true,
      status: 204,
    },
    async ({ call, params: { seq = "" } }) => {
      const { agent } = call.caller;
      // A token acting as an agent could otherwise erase the traces of what that agent did.
      if (agent) {
        throw new Problem("agent_forbidden", `This token acts as ${agent.name} and cannot erase payloads.`);
      }
      if (!isSeq(seq)) throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)}.`);
      await eraser.erase(call, Number(seq));
      return { status: 204 };
    },
  );

  return new Elysia({ prefix: "/v1/ledger" }).delete("/:seq/payload", erase.handle, erase.hook);
}
