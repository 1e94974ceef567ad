import { addConnector } from "../../mcp/support.ts";
import { type Answered, startGateway } from "../../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../../support/scripted-mcp.ts";
import { dispatch, type Stage, type StageOptions, startStage, until, yamlOf } from "../support.ts";

/** A tool that counts its calls, with a schema for checking arguments. */
const SEND = {
  name: "send",
  inputSchema: {
    type: "object",
    properties: { to: { type: "string" }, copies: { type: "integer" } },
    required: ["to"],
    additionalProperties: false,
  },
};

export interface Asked {
  readonly task: string;
  readonly call_id: string;
  readonly arguments_hash: string;
  readonly path: string;
}

/** A stage whose agent `careful` calls `up.send` once, with a person's approval, and then repeats the answer. */
export interface ApprovalStage extends Stage {
  readonly tools: ScriptedMcp;
  /** Dispatches a task and waits until it requests approval. */
  ask(agent?: string): Promise<Asked>;
  pending(query?: string): Promise<Asked[]>;
  decide(path: string, body: object, token?: string): Promise<Answered>;
  task(id: string): ReturnType<typeof Object>;
  /** Stops the gateway properly and starts another on the same data. `between` runs while no gateway is running. */
  restart(between?: (dataDir: string) => Promise<void> | void): Promise<void>;
}

export async function startApprovals(
  agent: object = {},
  options: StageOptions = {},
  calls: readonly object[] = [{ name: "up__send", arguments: { to: "all" } }],
): Promise<ApprovalStage> {
  const settings = { tiers: { 1: ["a"] }, ...options };
  const stage = await startStage(settings);
  let { gateway } = stage;
  const { admin } = gateway;
  const tools = startScriptedMcp([SEND]);
  await addConnector(gateway, "up", tools.url);
  await gateway.agent("careful", { approvals: ["up.*"], ...agent });
  stage.upstream.script("a", ({ body }) => {
    const last = (body as unknown as { messages: { role: string; content: unknown }[] }).messages.at(-1);
    if (last?.role !== "tool") return { chunks: ["let me see"], toolCalls: calls as never };
    return { chunks: [`answered: ${JSON.stringify(last.content)}`] };
  });
  const call: typeof gateway.call = (method, path, more) =>
    gateway.call(method, path, { token: admin, ...more });
  const pending = async (query = "") =>
    ((await call("GET", `/v1/approvals${query}`)).body.data as Asked[]).map((each) => ({
      ...each,
      path: `/v1/tasks/${each.task}/approvals/${each.call_id}`,
    }));
  return {
    get gateway() {
      return { ...gateway, admin, call };
    },
    upstream: stage.upstream,
    tools,
    pending,
    async ask(name = "careful") {
      const id = await dispatch({ ...gateway, call }, { agent: name, tools: ["up.send"] });
      let found: Asked | undefined;
      await until(async () => {
        found = (await pending(`?task=${id}`)).find(({ task }) => task === id);
        return found !== undefined;
      });
      if (!found) throw new Error("the task did not ask for approval");
      return found;
    },
    decide: (path, body, token) => call("POST", path, { body, ...(token === undefined ? {} : { token }) }),
    task: async (id: string) => (await call("GET", `/v1/tasks/${id}`)).body,
    async restart(between) {
      await gateway.gateway.stop();
      await between?.(gateway.dataDir);
      const clock = settings.clock ? { clock: settings.clock } : {};
      const next = await startGateway({
        ...clock,
        ...(settings.isOnFiles ? { isOnFiles: true } : {}),
        dataDir: gateway.dataDir,
        yaml: yamlOf(stage.upstream.url, settings),
      });
      gateway = next;
    },
    async stop() {
      await gateway.stop();
      await tools.close();
      await stage.upstream.close();
    },
  };
}
