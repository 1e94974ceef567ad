import { Elysia } from "elysia";
import Type from "typebox";
import type { JsonObject } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import { type FieldError, Problem } from "../../base/errors.ts";
import type { ApprovalTask, DirectCalls } from "../../connectors/direct/call.ts";
import type { ToolAnswer } from "../../connectors/source.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface ToolRouteParts {
  readonly calls: DirectCalls;
  readonly clock: Clock;
}

export const ToolCallRequest = Type.Object(
  {
    arguments: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The tool's arguments, as its `input_schema` requires. Default: `{}`.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** Tool calls made by a program itself, outside any task, like an MCP client's `tools/call`. */
export function toolRoutes(endpoints: EndpointContext, { calls, clock }: ToolRouteParts) {
  const call = endpoint(
    endpoints,
    {
      action: "tool.call",
      // The name is checked against the token's `tools:` scopes and its agent's globs.
      scope: null,
      summary: "Call a tool that the token's `tools:` scopes allow; 202 if a person must approve it first",
      tag: "Tools",
      body: ToolCallRequest,
      bodyOptional: true,
      slow: true,
      status: 200,
    },
    async ({ call, body, params: { name = "" }, request: { signal } }) => {
      let faults: readonly FieldError[] = [];
      const abort = new AbortController();
      const leave = () => abort.abort();
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const began = clock.monotonic();
      try {
        const answer = await calls.call(call, name, (body.arguments ?? {}) as JsonObject, {
          abort,
          faulty: (found) => {
            faults = found;
          },
        });
        if (faults.length > 0) throw invalidArguments(faults);
        if ("task" in answer) {
          // The call continues as a task, whose output is the tool's answer. This request does not wait for it.
          answer.leave();
          return {
            status: 202,
            body: viewAskedCall(answer),
            headers: { Location: `/v1/tasks/${answer.task}` },
          };
        }
        return { status: 200, body: viewToolAnswer(answer, clock.monotonic() - began) };
      } finally {
        signal.removeEventListener("abort", leave);
      }
    },
  );

  return new Elysia({ prefix: "/v1/tools" }).post("/:name/call", call.handle, call.hook);
}

/** The refusal is already in the ledger, with the hash of the arguments. */
function invalidArguments(faults: readonly FieldError[]): Problem {
  const errors = faults.map(({ path, message }) => ({ path: `/arguments${path}`, message }));
  const [first] = errors;
  return new Problem(
    "validation_failed",
    `${first?.path ?? "/arguments"}: ${first?.message ?? "not valid"}`,
    {
      errors,
    },
  );
}

/**
 * A tool's answer. `failed` also covers a tool that could not be reached; `content` then has the connector's message.
 * `duration_ms` is in whole milliseconds and includes waiting for the budget.
 */
export function viewToolAnswer({ content, structuredContent, isError }: ToolAnswer, durationMs: number) {
  return {
    status: isError === true ? ("failed" as const) : ("succeeded" as const),
    /** MCP's content blocks: `type` is text, image, audio, resource or resource_link. */
    content,
    structured_content: structuredContent ?? null,
    duration_ms: Math.round(durationMs),
  };
}

/** A call that a person must approve. The task makes the call once it is approved, and has its result. */
export function viewAskedCall({ task }: ApprovalTask) {
  return { task, status: "awaiting_approval" as const };
}
