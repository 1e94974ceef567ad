import type { AskedCall } from "../connectors/direct-call.ts";
import type { ToolAnswer } from "../connectors/source.ts";
import type { EventReader } from "../tasks/events.ts";
import { isFinal } from "../tasks/task.ts";
import type { McpParts } from "./parts.ts";
import { progressOf, type RequestContext, type Result, withLedger } from "./request.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { CANCELLED } from "./session.ts";
import type { Waits } from "./waits.ts";

/** Clients that give up on a call after a minute of silence hear of it several times. */
const PROGRESS_MS = 10_000;
/** As it stands in a frame; JSON has no line feed of its own. */
const DECIDED = "\nevent: approval.decided\n";

/**
 * Waits for a call that a person has to approve, to its end. Cancelling it cancels the task that it is, and takes the
 * question back; a client that only goes away does not: once it is approved the call is made, and is the task's output.
 */
export async function callAsked(
  parts: McpParts & { readonly waits: Waits },
  context: RequestContext,
  asked: AskedCall,
  ledgerSeq: number | null,
): Promise<Result> {
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

/** Of a call that goes on, with nobody waiting for it. */
function notAwaited(task: string, isDraining: boolean): RpcError {
  if (isDraining) {
    const words = `The server is stopping; the task ${task} goes on after its start.`;
    return new RpcError(RPC.unavailable, words, { code: "draining", task });
  }
  const words = `Too many calls wait for people here; this one goes on as the task ${task}.`;
  return new RpcError(RPC.rateLimited, words, { code: "rate_limited", task });
}

/** A tool's answer as MCP sends it. */
export function resultOf({ content, structuredContent, isError }: ToolAnswer): Result {
  return {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === true ? { isError } : {}),
  };
}

function metaOf({ _meta: meta }: Result): object {
  return typeof meta === "object" && meta !== null ? meta : {};
}

/** Its scope is the call's own: who may make a call may take it back. */
function cancel({ gate, tasks }: McpParts, { visit }: RequestContext, id: string): void {
  const operation = { action: "task.cancel", scope: null, counted: false, urgent: true } as const;
  // It never throws: that the task had ended before is no fault, and all else is recorded and logged there.
  void gate.perform(operation, visit.origin, visit, async (call) => {
    call.about({ task: id });
    await tasks.cancel(call, id);
  });
}

/** Reads until the task has ended, or nobody reads any more. */
async function toEnd(reader: EventReader, decided: () => void): Promise<void> {
  const decoder = new TextDecoder();
  for (let frames = await reader.next(); frames !== null; frames = await reader.next()) {
    if (frames.some((frame) => decoder.decode(frame).includes(DECIDED))) decided();
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
