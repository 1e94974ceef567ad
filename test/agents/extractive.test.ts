import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { defineTool, extractiveModel, inMemory, runAgent, type Tool } from "../../src/agents/index.ts";
import { collect, last, only } from "./support.ts";

const search = defineTool({
  name: "vault.search",
  description: "",
  input: Type.Object({ query: Type.String(), top_k: Type.Optional(Type.Integer()) }),
  execute: () => ({
    results: [
      {
        title: "Returns",
        text: "Shipping is free. Refunds are paid within 14 days. We like cats.",
        source_uri: "https://example.test/returns",
      },
      { title: "FAQ", text: "A refund takes 14 days to be paid.\nCall us.", document_id: "doc_1" },
    ],
  }),
});
const clock = defineTool({
  name: "time.now",
  description: "",
  input: Type.Object({ zone: Type.Optional(Type.String()) }),
  execute: () => ({ now: "2026-01-01T00:00:00.000Z" }),
});
const write = defineTool({
  name: "vault.write",
  description: "",
  input: Type.Object({ title: Type.String(), text: Type.String() }),
  execute: () => "written",
});

async function ask(prompt: string, tools: readonly Tool[]) {
  const events = await collect(runAgent({ model: extractiveModel(), prompt, tools }));
  const end = last(events);
  return { events, output: end?.type === "agent.finished" ? end.output : "" };
}

describe("builtin/extractive", () => {
  test("calls tools whose arguments it can fill in, the vault first, and quotes with sources", async () => {
    const { events, output } = await ask("When are refunds paid?", [clock, write, search]);
    expect(only(events, "tool.call").map(({ tool, arguments: input }) => [tool, input])).toEqual([
      ["vault.search", { query: "When are refunds paid?" }],
      ["time.now", {}],
    ]);
    expect(output).toContain("> “Refunds are paid within 14 days.” [1]");
    expect(output).toContain("> “A refund takes 14 days to be paid.” [2]");
    expect(output).toContain("[1] Returns — https://example.test/returns\n[2] FAQ — doc_1");
    expect(output).toContain('time.now answered: {"now":"2026-01-01T00:00:00.000Z"}');
    expect(output).not.toContain("cats");
    expect(output).toContain("I am builtin/extractive");
    expect(only(events, "output.delta").length).toBeGreaterThan(12);
    expect(last(events)).toMatchObject({ steps: 2, usage: { estimated: false } });
  });

  test("is deterministic", async () => {
    const [first, second] = [await ask("refunds", [search, clock]), await ask("refunds", [search, clock])];
    expect(first.output).toBe(second.output);
  });

  test("reports that it has nothing to quote", async () => {
    expect((await ask("Hello?", [])).output).toContain("I have nothing to quote: none of the tools");
    const none = { ...search, execute: () => ({ results: [] }) };
    expect((await ask("Hello?", [none])).output).toContain("the tools found no passages");
  });

  test("reports when the passages share no word with the question", async () => {
    expect((await ask("Zebra?", [search])).output).toContain(
      "The closest match:\n\n> “Shipping is free.” [1]",
    );
  });

  test("reports a tool that failed or was denied", async () => {
    const failing = {
      ...clock,
      execute() {
        throw new Error("SECRET");
      },
    };
    expect((await ask("?", [failing])).output).toContain("time.now failed: The tool time.now failed.");
  });

  test("searches again for the next question of a conversation", async () => {
    const memory = inMemory();
    for (const prompt of ["refunds", "shipping"]) {
      const events = await collect(runAgent({ model: extractiveModel(), prompt, tools: [search], memory }));
      expect(only(events, "tool.call").map(({ arguments: input }) => input)).toEqual([{ query: prompt }]);
      expect(last(events)).toMatchObject({ type: "agent.finished" });
    }
  });

  test("stops in the middle of an answer", async () => {
    const controller = new AbortController();
    const { stream } = await extractiveModel().doStream({
      prompt: [{ role: "user", content: [{ type: "text", text: "?" }] }],
      abortSignal: controller.signal,
    });
    const reader = stream.getReader();
    await reader.read();
    controller.abort(new Error("enough"));
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    await expect(rest()).rejects.toThrow("enough");
  });
});
