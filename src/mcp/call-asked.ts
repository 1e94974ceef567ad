import { createParser } from "eventsource-parser";
import type { ApprovalTask } from "../connectors/direct/call.ts";
import type { ToolAnswer } from "../connectors/source.ts";
import type { EventReader } from "../tasks/events/hub.ts";
import { isFinal } from "../tasks/task.ts";
import type { McpParts } from "./parts.ts";
import { progressOf, type RequestContext, type RpcResult, withLedger } from "./request.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { CANCELLED } from "./session.ts";
import type { TaskWaiters } from "./waits.ts";

/** Some clients give up after a minute of silence, so they get several notifications per minute. */
const PROGRESS_MS = 10_000;
/** The event as it appears in a frame. JSON itself contains no line feed. */
const DECIDED = "approval.decided";

/**
 * Waits for the end of a call that a person must approve. Cancelling the call cancels its task and withdraws the
 * request for approval. A client that merely disconnects does not: once approved, the call is made, and its result is
 * the task's output.
 */
export async function callAsked(
  parts: McpParts & { readonly waits: TaskWaiters },
  context: RequestContext,
  asked: ApprovalTask,
  ledgerSeq: number | null,
): Promise<RpcResult> {
  const { task: id } = asked;
  const { caller } = context.visit;
  const { signal } = context.abort;
  const reader = parts.tasks.read({ workspaceId: caller.workspaceId, id }, 0);
  const leave = () => {
    reader.close();
    if (signal.reason === CANCELLED) cancel(parts, context, id);
  };
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  const progress = tellProgress(parts, context, id);
  const over = parts.waits.add(caller.workspaceId, () => reader.close());
  try {
    if (!over) throw notAwaited(id, parts.waits.stopped);
    await toEnd(reader, progress.decided);
    const task = await parts.tasks.get(caller, id);
    if (!isFinal(task.status)) throw notAwaited(id, true);
    const text = task.output ?? task.error?.message ?? `The call was ${task.status}.`;
    const own = { content: [{ type: "text", text }], isError: task.status !== "succeeded" };
    const result = withLedger(resultOf(asked.answer() ?? own), ledgerSeq);
    return { ...result, _meta: { ...metaOf(result), "gatehouse/task": id } };
  } finally {
    progress.end();
    signal.removeEventListener("abort", leave);
    reader.close();
    asked.leave();
    over?.();
  }
}

/** The error for a call that continues while nobody waits for it. */
function notAwaited(task: string, isDraining: boolean): RpcError {
  if (isDraining) {
    const words = `The server is stopping. The task ${task} continues when it starts again.`;
    return new RpcError(RPC.unavailable, words, { code: "draining", task });
  }
  const words = `Too many calls are waiting for people. This one continues as the task ${task}.`;
  return new RpcError(RPC.rateLimited, words, { code: "rate_limited", task });
}

/** A tool's answer as an MCP result. */
export function resultOf({ content, structuredContent, isError }: ToolAnswer): RpcResult {
  const result: Record<string, unknown> = { content };
  if (structuredContent !== undefined) result.structuredContent = structuredContent;
  if (isError === true) result.isError = isError;
  return result;
}

function metaOf({ _meta: meta }: RpcResult): object {
  return typeof meta === "object" && meta !== null ? meta : {};
}

/** Needs no additional scope: a caller that may make the call may also cancel it. */
function cancel({ gate, tasks }: McpParts, { visit }: RequestContext, id: string): void {
  const operation = { action: "task.cancel", scope: null, counted: false, urgent: true } as const;
  // Never throws. A task that has already ended is not an error; anything else is recorded and logged by the gate.
  void gate.perform(operation, visit.origin, visit, async (call) => {
    call.about({ task: id });
    await tasks.cancel(call, id);
  });
}

/** Reads until the task has ended or the reader is closed. */
async function toEnd(reader: EventReader, decided: () => void): Promise<void> {
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ event }) {
      if (event === DECIDED) decided();
    },
  });
  for (let parts = await reader.next(); parts !== null; parts = await reader.next()) {
    for (const part of parts) parser.feed(decoder.decode(part, { stream: true }));
  }
}

function tellProgress({ clock }: McpParts, context: RequestContext, id: string) {
  const progress = progressOf(context);
  let step = 0;
  let stop = () => {};
  let message = `waiting for a person's approval, as task ${id}`;
  const say = () => {
    stop();
    step += 1;
    progress?.({ progress: step, message });
    stop = clock.after(PROGRESS_MS, say);
  };
  if (progress) say();
  return {
    decided() {
      message = "decided";
      if (progress) say();
    },
    end: () => stop(),
  };
}
