/**
 * Run by Node on dist/agents, to show that the framework and its model without weights work without Bun. It is imported
 * under the name that users import.
 */
import assert from "node:assert/strict";
import { defineTool, extractiveModel, runAgent } from "gatehouse/agents";

assert.equal(globalThis.Bun, undefined, "this check must run on Node");

const question = "Who keeps the spare key of the boathouse?";
const search = defineTool({
  name: "vault.search",
  description: "Searches the vault.",
  input: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
  execute: () => "The night porter keeps the spare key of the boathouse.",
});

const events = [];
for await (const event of runAgent({ model: extractiveModel(), prompt: question, tools: [search] })) {
  events.push(event);
}

const call = events.find((event) => event.type === "tool.call");
assert.deepEqual([call?.tool, call?.arguments], ["vault.search", { query: question }]);
const last = events.at(-1);
assert.equal(last?.type, "agent.finished");
assert.match(last.output, /night porter keeps the spare key/);
console.log(`${events.length} events, ${last.steps} steps: ${last.output.split("\n")[0]}`);

/** A model that answers with the number of its call, then with a JSON object. */
const prompts = [];
const scripted = {
  specificationVersion: "v4",
  provider: "test",
  modelId: "scripted",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("not scripted")),
  async doStream({ prompt }) {
    const text = prompts.push(prompt) === 1 ? "one" : '{"files":2}';
    const finishReason = { unified: "stop", raw: undefined };
    const usage = { inputTokens: { total: 9 }, outputTokens: { total: 3 } };
    const parts = [
      { type: "text-delta", id: "0", delta: text },
      { type: "finish", finishReason, usage },
    ];
    return { stream: ReadableStream.from(parts) };
  },
};
const parts = [
  { type: "file", mediaType: "text/plain", data: btoa("a text") },
  { type: "file", mediaType: "image/png", data: btoa("a picture") },
];
const schema = { type: "object", properties: { files: { type: "integer" } }, required: ["files"] };
let corrected;
for await (const event of runAgent({
  model: scripted,
  prompt: [{ role: "user", text: "How many?", parts }],
  output: { schema },
})) {
  corrected = event;
}
assert.equal(corrected?.type, "agent.finished");
assert.deepEqual([corrected.json, corrected.steps], [{ files: 2 }, 2]);
assert.deepEqual(prompts[0][1].content, [
  { type: "text", text: "How many?" },
  { type: "text", text: "a text" },
  { type: "file", mediaType: "image/png", data: { type: "data", data: btoa("a picture") } },
]);
