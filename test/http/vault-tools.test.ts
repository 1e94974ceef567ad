import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ToolCallScript } from "../support/fake-model.ts";
import { type Found, search as searchIn, write as writeTo } from "../support/vault.ts";
import { ledger, run, type Stage, startStage, unsettled } from "../tasks/support.ts";

let stage: Stage;
let agents = 0;
let agent: string;
const TOOLS = ["vault.search", "vault.read", "vault.write"];

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"], 2: ["builtin/extractive"] } });
});
afterAll(() => stage.stop());
beforeEach(async () => {
  agent = `agent-${++agents}`;
  await stage.gateway.agent(agent, { memory_scope: [`${agent}/own`, `${agent}/more`] });
});

const write = async (scope: string, text: string, title = "A note") =>
  (await writeTo(stage.gateway, { title, text, scope })).id;
const read = (id: string) => stage.gateway.call("GET", `/v1/vault/documents/${id}`);
const search = async (query: string, scope: string) =>
  (await searchIn(stage.gateway, { query, scopes: [scope], mode: "keyword" })).results;

interface Called {
  readonly status: string;
  /** The result that the model received. */
  readonly told: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly answer: any;
  readonly task: string;
}

/** Runs one task whose model makes this one call and then answers. */
async function call(name: string, args: object): Promise<Called> {
  const toolCalls: ToolCallScript[] = [{ name: name.replace(".", "__"), arguments: args }];
  stage.upstream.script("a", (_request, index) => (index === 0 ? { toolCalls } : { chunks: ["Done."] }));
  const task = await run(stage.gateway, { agent, tools: TOOLS });
  expect(task).toMatchObject({ status: "succeeded", output: "Done." });
  expect(task.tools_called).toHaveLength(1);
  const message = stage.upstream.requests.at(-1)?.body.messages.find(({ role }) => role === "tool");
  const told = String(message?.content);
  const status = task.tools_called[0].status;
  return { status, told, answer: status === "succeeded" ? JSON.parse(told) : null, task: task.id };
}

describe("builtin/extractive with vault.search", () => {
  test("quotes and cites what is in the agent's memory, and never anything outside", async () => {
    await write(`${agent}/own`, "Refunds are paid within fourteen days.", "Returns");
    await write(`${agent}/other`, "Refunds are never paid, says the board.", "Minutes");
    await write(`${agent}/ownx`, "Refunds are paid in gold.", "Rumours");
    await write("/", "Refunds are paid to the root.", "Root");
    const asking = { agent, tier: 2, prompt: "When are refunds paid?", tools: ["vault.search"] };
    const task = await run(stage.gateway, asking);
    expect(task).toMatchObject({ status: "succeeded", model: "builtin/extractive" });
    expect(task.tools_called).toMatchObject([{ tool: "vault.search", status: "succeeded" }]);
    expect(task.output).toContain("“Refunds are paid within fourteen days.” [1]");
    expect(task.output).toContain("[1] Returns");
    for (const outside of ["board", "gold", "root", "Minutes", "Rumours", "Root"]) {
      expect(JSON.stringify(task)).not.toContain(outside);
    }
  });

  test("finds nothing if everything is outside", async () => {
    await write(`${agent}-x`, "Refunds are never paid, says the board.", "Minutes");
    const task = await run(stage.gateway, { agent, tier: 2, prompt: "refunds", tools: ["vault.search"] });
    expect(task.status).toBe("succeeded");
    expect(JSON.stringify(task)).not.toContain("board");
  });
});

describe("vault.search", () => {
  test("returns only passages from the agent's memory", async () => {
    const own = await write(`${agent}/own/deep`, "The heron stands in the reeds.");
    await write(`${agent}/ownx`, "The heron stands outside.");
    for (const mode of ["hybrid", "keyword", "vector"]) {
      const { status, answer } = await call("vault.search", { query: "heron", mode });
      expect([status, answer.mode]).toEqual(["succeeded", mode]);
      expect(answer.results.map((each: Found) => each.document_id)).toEqual([own]);
    }
  });

  test.each([
    ["everything", ["/"], 1],
    ["a sibling", [":agent/ownx"], 0],
    ["the scope above", [":agent"], 1],
    ["the scope below", [":agent/own/deep"], 1],
    ["another part of its memory", [":agent/more"], 0],
  ] as const)("narrowed to %s", async (_, scopes, count) => {
    await write(`${agent}/own/deep`, "The ibis wades.");
    await write(`${agent}/ownx`, "The ibis is outside.");
    const wanted = scopes.map((scope) => scope.replace(":agent", agent));
    const { answer } = await call("vault.search", { query: "ibis", scopes: wanted });
    expect(answer.results).toHaveLength(count);
  });

  test.each([
    ["a hostile scope", { query: "a", scopes: ["own/../other"] }],
    ["another agent", { query: "a", agent: "other" }],
    ["an empty query", { query: "" }],
    ["too many results", { query: "a", top_k: 101 }],
  ])("with %s is denied before it runs", async (_, args) => {
    const { status, told } = await call("vault.search", args);
    expect(status).toBe("denied");
    expect(told).toContain("not valid");
  });

  test("sees the agent's memory at the moment of the call", async () => {
    await write(`${agent}/own`, "The egret is old.");
    const fresh = await write(`${agent}/later`, "The egret is new.");
    const seen: string[][] = [];
    stage.upstream.script("a", (request, index) => {
      const told = request.body.messages.filter(({ role }) => role === "tool").at(-1);
      if (told) {
        seen.push(JSON.parse(String(told.content)).results.map((each: Found) => each.document_id));
      }
      if (index === 2) return { chunks: ["Done."] };
      // The agent's memory changes between the two calls.
      const changed =
        index === 1
          ? stage.gateway.call("PATCH", `/v1/agents/${agent}`, { body: { memory_scope: `${agent}/later` } })
          : Promise.resolve();
      return { toolCalls: [{ name: "vault__search", arguments: { query: "egret" } }], gate: changed };
    });
    const task = await run(stage.gateway, { agent, tools: TOOLS });
    expect(task.status).toBe("succeeded");
    expect(seen.map((ids) => ids.includes(fresh))).toEqual([false, true]);
    expect(seen.map((ids) => ids.length)).toEqual([1, 1]);
  });
});

describe("vault.read", () => {
  test("reads a document in the agent's memory, in parts if requested", async () => {
    const id = await write(`${agent}/own`, `${"0123456789".repeat(3_000)}😀end`, "Digits");
    const whole = await call("vault.read", { document_id: id });
    expect(whole.answer).toMatchObject({ id, title: "Digits", start: 0, end: 20_000, next_start: 20_000 });
    const rest = await call("vault.read", { document_id: id, start: whole.answer.next_start });
    expect(rest.answer.next_start).toBeNull();
    expect(whole.answer.text + rest.answer.text).toBe((await read(id)).body.text);
    const part = await call("vault.read", { document_id: id, start: 5, end: 8 });
    expect(part.answer).toMatchObject({ text: "567", start: 5, end: 8 });
    const past = await call("vault.read", { document_id: id, start: 1_000_000 });
    expect(past.answer).toMatchObject({ text: "", next_start: null });
  });

  test("fails with the same message for documents outside and for unknown ones", async () => {
    const outside = await write(`${agent}/ownx`, "A secret.", "Secret");
    const never = outside.replace(/.{6}$/, "000000");
    const [one, other] = [
      await call("vault.read", { document_id: outside }),
      await call("vault.read", { document_id: never }),
    ];
    expect([one.status, other.status]).toEqual(["failed", "failed"]);
    expect(one.told.replaceAll(outside, "ID")).toBe(other.told.replaceAll(never, "ID"));
    expect(one.told.toLowerCase()).not.toContain("secret");
  });
});

describe("vault.write", () => {
  test("writes into the agent's memory, and the document can be found from then on", async () => {
    const { status, answer, task } = await call("vault.write", {
      title: "Learnt",
      text: "The bittern booms.",
    });
    expect([status, answer.scope, answer.title]).toEqual(["succeeded", `${agent}/own`, "Learnt"]);
    expect((await search("bittern", agent)).map(({ document_id }) => document_id)).toEqual([answer.id]);
    const found = await call("vault.search", { query: "bittern" });
    expect(found.answer.results[0].document_id).toBe(answer.id);
    const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task && entry.tool);
    expect(entries.map(({ phase, outcome }) => [phase, outcome])).toEqual([
      ["intent", "allowed"],
      ["outcome", "succeeded"],
    ]);
    expect(JSON.stringify(entries)).not.toContain("bittern");
  });

  test("writes to a given scope inside", async () => {
    const { answer } = await call("vault.write", {
      title: "T",
      text: "A rail.",
      scope: `${agent}/more/deep`,
    });
    expect((await read(answer.id)).body.scope).toBe(`${agent}/more/deep`);
  });

  test.each([":agent", ":agent/ownx", "/", "legal"])(
    "is refused in %s, and writes nothing",
    async (scope) => {
      const target = scope.replace(":agent", agent);
      const { status, told } = await call("vault.write", {
        title: "T",
        text: "A crake hides.",
        scope: target,
      });
      expect(status).toBe("failed");
      expect(told).toContain("outside");
      expect(await search("crake", "/")).toEqual([]);
    },
  );

  test("replaces a document inside, and is refused for one outside, which is unchanged", async () => {
    const own = await write(`${agent}/own`, "The stork is old.");
    const replaced = await call("vault.write", { id: own, title: "New", text: "The stork is new." });
    expect([replaced.status, replaced.answer.id]).toEqual(["succeeded", own]);
    expect((await read(own)).body.text).toBe("The stork is new.");
    const outside = await write(`${agent}/ownx`, "The stork is theirs.");
    const before = (await read(outside)).body;
    const refused = await call("vault.write", { id: outside, title: "Mine", text: "The stork is mine." });
    expect(refused.status).toBe("failed");
    expect((await read(outside)).body).toEqual(before);
    expect(await search("mine", agent)).toEqual([]);
  });

  test.each([
    ["no text", { title: "T", text: "" }, "denied"],
    ["a hostile scope", { title: "T", text: "x", scope: "own/../x" }, "denied"],
    ["an invalid id", { title: "T", text: "x", id: "doc_1" }, "failed"],
    ["an unsupported type", { title: "T", text: "x", content_type: "image/png" }, "failed"],
    [
      "a document that does not match its type",
      { title: "T", text: "{", content_type: "application/json" },
      "failed",
    ],
  ])("with %s writes nothing", async (_, args, expected) => {
    const { status } = await call("vault.write", args);
    expect(status).toBe(expected);
    const list = await stage.gateway.call("GET", `/v1/vault/documents?scope=${agent}`);
    expect(list.body.data).toEqual([]);
  });
});

describe("a caller without the right to a vault tool is refused before anything runs", () => {
  test.each(TOOLS)("%s by the agent's globs", async (tool) => {
    await stage.gateway.agent(`${agent}-narrow`, { tools: ["time.*"] });
    const body = { agent: `${agent}-narrow`, prompt: "hi", tools: [tool] };
    const answer = await stage.gateway.call("POST", "/v1/tasks", { body });
    expect([answer.status, answer.body.code]).toEqual([403, "tool_forbidden"]);
  });

  test.each([
    ["vault.write", "tools:vault.search"],
    ["vault.search", "tools:vault.write"],
    ["vault.read", "tools:time.*"],
    ["vault.read", "tools:vault.r"],
  ])("%s by a token with only %s", async (tool, scope) => {
    const token = await stage.gateway.token({
      agent,
      scopes: ["tasks:write", "vault:read", "vault:write", scope],
    });
    const body = { agent, prompt: "hi", tools: [tool] };
    const answer = await stage.gateway.call("POST", "/v1/tasks", { token, body });
    expect([answer.status, answer.body.code]).toEqual([403, "tool_forbidden"]);
  });

  test("a nonexistent vault tool is unknown", async () => {
    const body = { agent, prompt: "hi", tools: ["vault.delete"] };
    const answer = await stage.gateway.call("POST", "/v1/tasks", { body });
    expect([answer.status, answer.body.code]).toEqual([422, "unknown_tool"]);
  });
});

test("afterwards every intent has exactly one outcome", async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});
