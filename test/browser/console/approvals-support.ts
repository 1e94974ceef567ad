/** A console with agents that need approval. Each task's prompt says what the model calls and what it says first. */
import type { Locator, Page } from "playwright-core";
import { addConnector } from "../../mcp/support.ts";
import { eventually } from "../../support/browser.ts";
import type { Answered } from "../../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../../support/scripted-mcp.ts";
import { dispatch, type StageOptions } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

const TOOLS = [
  {
    name: "send",
    description: "Sends a message to people outside of the company. It cannot be taken back.",
    inputSchema: {
      type: "object",
      properties: { to: { type: "string" }, copies: { type: "integer" }, text: { type: "string" } },
      required: ["to"],
      additionalProperties: false,
    },
    annotations: { destructiveHint: true },
  },
  { name: "look", description: "Looks something up.", inputSchema: { type: "object" } },
];

/** The instructions in a task's prompt. */
export interface Told {
  readonly agent?: string;
  /** The part of the prompt that is meant for people. */
  readonly words?: string;
  /** What the model says before it asks for approval. */
  readonly says?: string;
  readonly arguments: object;
  /** Whether the model calls a harmless tool first. */
  readonly looks?: boolean;
}

export interface Asked {
  readonly task: string;
  readonly call_id: string;
  readonly arguments_hash: string;
  /** Path of the approval's page below `/console`. */
  readonly page: string;
  /** Path of the decision in the REST API. */
  readonly path: string;
}

export interface ApprovalConsole extends TestConsole {
  readonly tools: ScriptedMcp;
  /** Dispatches a task and waits until it requests approval of `desk.send`. */
  ask(told: Told): Promise<Asked>;
  decide(asked: Asked, body: object, token?: string): Promise<Answered>;
  /** The approval's current state, from REST. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  now(asked: Asked): Promise<any>;
  /** The secret of a new token for a person, by default with all rights. */
  person(name: string, scopes?: readonly string[]): Promise<string>;
}

/** Creates two agents: `clerk` needs one person's approval, `pair` needs two. */
export async function openApprovals(options: StageOptions = {}): Promise<ApprovalConsole> {
  const stage = await openConsole(options);
  const { gateway, model } = stage;
  const tools = startScriptedMcp(TOOLS);
  await addConnector(gateway, "desk", tools.url);
  await gateway.agent("clerk", {
    approvals: ["desk.send"],
    owner: "Ada Lovelace",
    memory_scope: "support/emea",
  });
  await gateway.agent("pair", { approvals: ["desk.send"], approvals_required: 2 });
  model.script("small", ({ body }) => {
    const { messages } = body as unknown as { messages: { role: string; content: unknown }[] };
    const prompt = String(messages.find(({ role }) => role === "user")?.content);
    const told = JSON.parse(prompt.slice(prompt.indexOf("\n") + 1)) as Told;
    const answers = messages.filter(({ role }) => role === "tool").length;
    if (told.looks && answers === 0) {
      return { chunks: ["Looking first."], toolCalls: [{ name: "desk__look", arguments: { at: "orders" } }] };
    }
    if (answers > (told.looks ? 1 : 0)) return { chunks: ["done"] };
    const call = { name: "desk__send", arguments: told.arguments };
    return { chunks: told.says === undefined ? [] : [told.says], toolCalls: [call] };
  });
  const list = async (query: string): Promise<Omit<Asked, "page" | "path">[]> =>
    (await gateway.call("GET", `/v1/approvals?limit=200&${query}`)).body.data;
  return {
    ...stage,
    tools,
    async ask(told) {
      const prompt = `${told.words ?? "Please send it."}\n${JSON.stringify(told)}`;
      const tools = ["desk.send", "desk.look"];
      const task = await dispatch(gateway, { agent: told.agent ?? "clerk", prompt, tools });
      let found: Omit<Asked, "page" | "path"> | undefined;
      await eventually(async () => {
        [found] = await list(`status=pending&task=${task}`);
        return found !== undefined;
      });
      if (!found) throw new Error("the task did not ask for approval");
      const { call_id } = found;
      const path = `/v1/tasks/${task}/approvals/${call_id}`;
      return { ...found, page: `/approvals/${task}/${call_id}`, path };
    },
    decide: (asked, body, token) =>
      gateway.call("POST", asked.path, { body, ...(token === undefined ? {} : { token }) }),
    async now(asked) {
      const found = await list(`status=all&task=${asked.task}`);
      return found.find(({ call_id }) => call_id === asked.call_id);
    },
    person: (name, scopes = ["admin"]) => gateway.token({ name, scopes, person: name }),
    async close() {
      await tools.close();
      await stage.close();
    },
  };
}

/** The rows of the list of approvals. */
export function rows(page: Page): Locator {
  return page.getByRole("region", { name: "Pending calls" }).getByRole("listitem");
}

/** The bar with the buttons for a decision. */
export function bar(page: Page): Locator {
  return page.getByRole("region", { name: "Decision" });
}

export function argumentsOf(page: Page): Locator {
  return page.getByRole("region", { name: "Arguments of desk.send", exact: true });
}
