import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/agents/index.ts";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { type LogFields, silentLog } from "../../../src/base/log.ts";
import { createMask } from "../../../src/base/masking/mask.ts";
import type { McpDefinition } from "../../../src/connectors/definition/definition.ts";
import type { McpSourceParts } from "../../../src/connectors/mcp-upstream/parts.ts";
import { mcpSource } from "../../../src/connectors/mcp-upstream/source.ts";
import {
  ConnectorError,
  type SourceCall,
  type ToolAnswer,
  type ToolDescription,
  type ToolSource,
} from "../../../src/connectors/source.ts";
import { expandTool, keepTool } from "../../../src/connectors/tools/kept-tool.ts";
import type { Script } from "../../support/fake-mcp/upstream.ts";
import { INSTANCE, testOutbound } from "../../support/outbound.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "..", "support", "fake-mcp", "stdio.ts");
export const SECRET = "hunter22-long";

/** The system's clock, running this many times as fast. */
export function fasterClock(times: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic() * times,
    after: (ms, task) => systemClock.after(ms / times, task),
  };
}

/** For children that refuse to end: each step towards killing them takes two seconds. */
export const quickClock = fasterClock(20);

export interface Logged {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export interface Opened {
  readonly source: ToolSource;
  readonly logged: readonly Logged[];
  /** The first line, logged already or later, that satisfies this condition. */
  logs(holds: (logged: Logged) => boolean): Promise<Logged>;
  call(name: string, input?: JsonObject, context?: Partial<SourceCall>): Promise<ToolAnswer>;
  list(): Promise<readonly ToolDescription[]>;
}

export type Given = Partial<McpSourceParts>;

/** A source with real parts. It is closed when the test ends. */
export function open(transport: McpDefinition["transport"], given: Given = {}): Opened & AsyncDisposable {
  const logged: Logged[] = [];
  let noted = (): void => {};
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      logged.push({ level, message, fields });
      noted();
    };
  const outbound = testOutbound();
  const source = mcpSource(
    { name: "up" },
    { kind: "mcp", transport },
    {
      workspaceId: 1,
      fetch: outbound.fetch,
      instance: INSTANCE,
      mask: createMask([SECRET]),
      clock: systemClock,
      random: systemRandom,
      log: { ...silentLog, debug: at("debug"), warn: at("warn"), info: at("info"), error: at("error") },
      timeoutMs: 20_000,
      programUsers: null,
      toolsChanged: () => {},
      ...given,
    },
  );
  return {
    source,
    logged,
    async logs(holds) {
      for (;;) {
        const found = logged.find(holds);
        if (found) return found;
        await new Promise<void>((resolve) => {
          noted = resolve;
        });
      }
    },
    list: async () => (await source.list(new AbortController().signal)).map(expandTool),
    call: (name, input = {}, context = {}) =>
      source.call(keepTool(tool(name)), input, {
        signal: new AbortController().signal,
        callId: "call_1",
        ...context,
      }),
    async [Symbol.asyncDispose]() {
      await source.close();
      outbound.close();
    },
  };
}

/** The scripted upstream over stdio, in a separate process. */
export function openFake(
  behaviour: string,
  script: Script = {},
  given: Given = {},
): Opened & AsyncDisposable {
  const args = [FAKE_STDIO, behaviour, JSON.stringify(script)];
  return open({ type: "stdio", command: process.execPath, args, env: { SECRET } }, given);
}

export function tool(name: string): ToolDescription {
  return { name, description: "", inputSchema: { type: "object" }, destructive: false, binding: { name } };
}

/** The text of an answer's only block. */
export function textOf(answer: ToolAnswer): string {
  const [block] = answer.content;
  return typeof block?.text === "string" ? block.text : "";
}

/** The error that a call fails with, as `fault: message`. */
export async function faultOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ConnectorError) return `${error.fault}: ${error.message}`;
    throw error;
  }
  throw new Error("it was expected to fail");
}

/** Whether the process exists and has not ended. */
export function runs(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.[0] !== "Z";
  } catch {
    // No such process.
    return false;
  }
}

/** The pid of the answering process, which leads its process group. */
export async function pidOf(up: Opened): Promise<number> {
  return Number(textOf(await up.call("pid")));
}
