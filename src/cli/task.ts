import type { Command } from "commander";
import { OperatorError } from "../base/errors.ts";
import { readEvents, type ServerEvent } from "./events.ts";
import { refusal, withGateway } from "./operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "./options.ts";
import { print } from "./output.ts";

interface TaskVerbOptions extends ConfigOptions {
  readonly agent: string;
  readonly tier?: string;
  readonly tool?: readonly string[];
  readonly workspace: string;
  readonly json?: boolean;
}

interface FinishedTaskEvent {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export function taskCommand(): Command {
  return plain("task", "run tasks").addCommand(
    command("run", "dispatch a task and stream its answer to standard output")
      .argument("<prompt>", "what the agent should do")
      .requiredOption("--agent <agent>", "the agent that runs it")
      .option("--tier <n>", "tier of models (default: the lowest that the agent's policy allows)")
      .option("--tool <tool>", "a tool the task may call (repeatable)", collect)
      .option("--workspace <name>", "workspace", "default")
      .option("--json", "print every event as a line of JSON instead")
      .action(run),
  );
}

async function run(prompt: string, options: TaskVerbOptions): Promise<void> {
  if (options.tier !== undefined && !/^[1-9]\d{0,8}$/.test(options.tier)) {
    throw new OperatorError(
      `--tier takes a positive whole number, not ${JSON.stringify(options.tier)}`,
      undefined,
      2,
    );
  }
  const { config } = await resolveConfig(options);
  const finished = await withGateway(config, options.workspace, async (api) => {
    const response = await api.fetch("POST", "/v1/tasks?stream=true", {
      agent: options.agent,
      prompt,
      ...(options.tier === undefined ? {} : { tier: Number(options.tier) }),
      ...(options.tool === undefined ? {} : { tools: options.tool }),
    });
    if (!response.ok || !response.body) throw await refusal(response);
    let last: FinishedTaskEvent | undefined;
    for await (const event of readEvents(response.body)) {
      if (options.json) print(JSON.stringify(event));
      else show(event);
      if (event.event === "task.finished") last = event.data as FinishedTaskEvent;
    }
    return last;
  });
  if (!finished)
    throw new OperatorError("the stream ended before the task did", "read its state with: GET /v1/tasks");
  if (!options.json) process.stdout.write("\n");
  if (finished.status === "succeeded") return;
  const why = finished.error ? `: ${finished.error.message} (${finished.error.code})` : "";
  throw new OperatorError(`task ${finished.id} ${finished.status}${why}`);
}

/** Prints the answer to standard output, and everything else to standard error. */
function show({ event, data }: ServerEvent): void {
  if (event === "output.delta") process.stdout.write((data as { text: string }).text);
  else if (event === "output.reset") process.stderr.write("\n[retrying the step]\n");
  else if (event === "model.fallback") {
    const { from, to, reason } = data as { from: string; to: string; reason: string };
    process.stderr.write(`[${from} failed (${reason}), trying ${to}]\n`);
  } else if (event === "tool.call") process.stderr.write(`[calling ${(data as { tool: string }).tool}]\n`);
}
