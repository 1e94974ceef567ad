/**
 * Existing clients, unmodified: each sends a question with a tool, runs the tool that the model calls, and gets the
 * answer, with and without streaming.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { CONVERSATIONS, type Conversation } from "./conversations.ts";
import { startToolProvider, type ToolProvider } from "./provider.ts";

let provider: ToolProvider;
let gateway: TestGateway;
let apiKey: string;

beforeAll(async () => {
  provider = startToolProvider({ tool: "look_up", input: { id: 7 } });
  gateway = await startGateway({
    yaml: `
providers:
  openai: { kind: openai, base_url: ${provider.url}, api_key: sk-upstream }
  anthropic: { kind: anthropic, base_url: ${provider.url}, api_key: sk-upstream }
aliases:
  "gpt-*": openai/gpt-*
  "claude-*": anthropic/claude-*
`,
  });
  await gateway.agent("writer");
  apiKey = await gateway.token({ agent: "writer" });
});
afterAll(async () => {
  await gateway.stop();
  await provider.close();
});

describe.each(CONVERSATIONS)("%s", (_, api, converse: Conversation) => {
  test.each([
    ["whole", false],
    ["streamed", true],
  ])("gets an answer after a tool call, %s", async (_form, isStream) => {
    const sent = provider.paths.length;
    const before = await succeeded();
    const given: number[] = [];
    const text = await converse({ base: gateway.url, apiKey, isStream }, (id) => {
      given.push(id);
      return "the key is in the boathouse";
    });
    expect(text).toBe("The tool returned: the key is in the boathouse");
    expect(given).toEqual([7]);
    expect(provider.paths.slice(sent)).toEqual([api, api]);
    expect(await succeeded()).toBe(before + 2);
  });
});

/** How many model calls of the agent the ledger records as complete. */
async function succeeded(): Promise<number> {
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=200");
  return body.data.filter((entry: Readonly<Record<string, unknown>>) => {
    return entry.phase === "outcome" && entry.outcome === "succeeded" && entry.agent === "writer";
  }).length;
}
