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
