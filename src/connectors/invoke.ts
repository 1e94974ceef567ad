import { type JsonObject, ToolError } from "../agents/index.ts";
import type { Log } from "../base/log.ts";
import { abandonable } from "./abandonable.ts";
import type { ToolActor } from "./builtin/tool.ts";
import type { CatalogueTool } from "./catalogue.ts";
import { failedAnswer } from "./direct/answer.ts";
import type { SourceCall, ToolAnswer } from "./source.ts";

/** How a tool call ended. `aborted`: by its signal, so it is unknown what the tool did if the call was sent. */
export type Invocation =
  | { readonly status: "succeeded"; readonly answer: ToolAnswer }
  | { readonly status: "failed"; readonly answer: ToolAnswer; readonly code: string }
  | { readonly status: "aborted"; readonly isSent: boolean };

/**
 * Calls a tool with valid arguments. The tool's own failure becomes an answer with `isError`. Never throws.
 *
 * A tool that changes data in Gatehouse is always awaited, so that the recorded outcome is what it did; it checks the
 * signal before each change. Any other is abandoned when the signal aborts, since an upstream may ignore the signal.
 */
export async function invoke(
  tool: CatalogueTool,
  actor: ToolActor,
  input: JsonObject,
  context: SourceCall,
  log: Log,
): Promise<Invocation> {
  const { signal } = context;
  let isSent = false;
  const work = () => {
    isSent = true;
    return tool.call(actor, input, context);
  };
  try {
    const answer = await (tool.isWaitedFor ? work() : abandonable(signal, work));
    if (answer.isError === true) return { status: "failed", answer, code: "tool_error" };
    return { status: "succeeded", answer };
  } catch (error) {
    if (signal.aborted) return { status: "aborted", isSent };
    if (error instanceof ToolError) {
      const code = "fault" in error && typeof error.fault === "string" ? error.fault : "tool_error";
      return { status: "failed", answer: failedAnswer(error.message), code };
    }
    // Not written for the caller, and may contain secrets.
    log.error("a tool failed unexpectedly", { tool: tool.name, error });
    return { status: "failed", answer: failedAnswer(`The tool ${tool.name} failed.`), code: "internal" };
  }
}
