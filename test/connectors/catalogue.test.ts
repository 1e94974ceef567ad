import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Problem } from "../../src/base/errors.ts";
import { timeNow } from "../../src/connectors/builtin/time.ts";
import { Catalogue } from "../../src/connectors/catalogue.ts";
import { ToolRegistry, textOf } from "../../src/connectors/registry.ts";
import type { ToolDescription } from "../../src/connectors/source.ts";
import { inputSchemaOf, type KeptTool, keepTool } from "../../src/connectors/tools/kept-tool.ts";
import { FakeClock } from "../support/clock.ts";
import { origin } from "./bench.ts";

const tool = (name: string, more: Partial<ToolDescription> = {}): KeptTool =>
  keepTool({ name, description: name, inputSchema: { type: "object" }, destructive: false, ...more });
const call = async () => ({ content: [] });
const names = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);

let catalogue: Catalogue;
let registry: ToolRegistry;
let changes: number[];
beforeEach(() => {
  catalogue = new Catalogue([timeNow(new FakeClock())]);
  registry = new ToolRegistry(catalogue);
  changes = [];
  catalogue.changed.listen((workspaceId) => void changes.push(workspaceId));
});

describe("the catalogue", () => {
  test("knows a workspace's own tools and the built-in ones, and nothing of another workspace", () => {
    catalogue.put(1, origin("up"), ["*"], [tool("b"), tool("a")], call);
    catalogue.put(2, origin("other"), ["*"], [tool("c")], call);
    expect(names(catalogue.list(1))).toEqual(["time.now", "up.a", "up.b"]);
    expect(names(catalogue.list(2))).toEqual(["other.c", "time.now"]);
    expect(names(catalogue.list(3))).toEqual(["time.now"]);
    expect(catalogue.find(1, "other.c")).toBeUndefined();
    expect(catalogue.find(2, "other.c")?.connector).toBe("other");
    expect(catalogue.toolsOf(1, "other")).toEqual([]);
    expect(names(catalogue.toolsOf(2, "time"))).toEqual(["time.now"]);
    expect(changes).toEqual([1, 2]);
  });

  test("lists nothing outside a connector's scopes, but still knows it as not authorised", () => {
    catalogue.put(
      1,
      origin("up"),
      ["get_*", "list"],
      [tool("get_a"), tool("list"), tool("list_all"), tool("drop")],
      call,
    );
    expect(names(catalogue.toolsOf(1, "up"))).toEqual(["up.get_a", "up.list"]);
    expect(names(catalogue.list(1))).toEqual(["time.now", "up.get_a", "up.list"]);
    expect(catalogue.find(1, "up.drop")?.isAuthorised).toBe(false);
  });

  test("has the tools that were put last, and none once dropped; it reports both, but no empty change", () => {
    catalogue.put(1, origin("up"), ["*"], [tool("a")], call);
    catalogue.put(1, origin("up"), ["*"], [tool("b")], call);
    expect(names(catalogue.list(1))).toEqual(["time.now", "up.b"]);
    expect(catalogue.find(1, "up.a")).toBeUndefined();
    catalogue.drop(1, "up");
    expect(names(catalogue.list(1))).toEqual(["time.now"]);
    catalogue.drop(1, "up");
    catalogue.drop(2, "up");
    expect(changes).toEqual([1, 1, 1]);
  });

  test("returns the same list until something changes, so comparing reads no tool", () => {
    catalogue.put(1, origin("up"), ["*"], [tool("a")], call);
    const list = catalogue.list(1);
    catalogue.put(2, origin("up"), ["*"], [tool("a")], call);
    expect(catalogue.list(1)).toBe(list);
    catalogue.put(1, origin("more"), ["*"], [], call);
    expect(catalogue.list(1)).not.toBe(list);
  });

  test("checks arguments against the tool's schema, compiled at the first call", () => {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } as const;
    catalogue.put(1, origin("up"), ["*"], [tool("add", { inputSchema: schema })], call);
    const found = catalogue.find(1, "up.add");
    expect(found?.validate({ n: 1 })).toEqual([]);
    expect(found?.validate({ n: "1" }).map(({ path }) => path)).toEqual(["/n"]);
    expect(found?.validate({})).toHaveLength(1);
  });

  test("lists a harmful pattern as its upstream sent it, and does not match it", () => {
    const schema = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } } as const;
    catalogue.put(1, origin("up"), ["*"], [tool("match", { inputSchema: schema })], call);
    const found = catalogue.find(1, "up.match");
    expect(found && inputSchemaOf(found.offered)).toEqual(schema);
    expect(found?.validate({ a: `${"a".repeat(100)}!` })).toEqual([]);
    expect(found?.validate({ a: 1 })).toHaveLength(1);
  });
});

const codeOf = (work: () => unknown) => {
  try {
    work();
    return "found";
  } catch (error) {
    return error instanceof Problem ? error.code : "broken";
  }
};

describe("the registry", () => {
  const user = { tools: ["*"], scopes: ["tools:*"] };
  beforeEach(() =>
    catalogue.put(1, origin("up"), ["get_*"], [tool("get_a"), tool("drop", { destructive: true })], call),
  );

  test.each([
    ["a tool that does not exist", ["up.none"], user, "unknown_tool"],
    ["a tool that does not exist, before a forbidden one", ["up.drop", "up.none"], user, "unknown_tool"],
    ["a tool that the connector is not authorised for", ["up.drop"], user, "tool_forbidden"],
    ["a tool that the agent may not use", ["up.get_a"], { ...user, tools: ["up.get"] }, "tool_forbidden"],
    [
      "a tool that the token may not use",
      ["up.get_a"],
      { ...user, scopes: ["tasks:write"] },
      "tool_forbidden",
    ],
    ["one among others", ["time.now", "up.drop"], user, "tool_forbidden"],
  ] as const)("refuses %s", (_, wanted, by, code) => {
    expect(codeOf(() => registry.find(1, wanted, by))).toBe(code);
    expect(wanted.some((name) => !registry.allows(1, name, by))).toBe(true);
  });

  test("names the position of a missing tool", () => {
    try {
      registry.find(1, ["time.now", "up.none"], user);
      throw new Error("it was found");
    } catch (error) {
      expect(error instanceof Problem && error.errors?.[0]?.path).toBe("/tools/1");
    }
  });

  test("requires approval as the agent demands, or else for destructive tools", () => {
    expect(registry.needsApproval(1, "up.drop", null)).toBe(true);
    expect(registry.needsApproval(1, "up.get_a", null)).toBe(false);
    expect(registry.needsApproval(1, "up.drop", [])).toBe(false);
    expect(registry.needsApproval(1, "up.get_a", ["up.get_*"])).toBe(true);
    expect(registry.needsApproval(2, "up.drop", null)).toBe(false);
  });

  test("for any agent and token, exactly the permitted tools are found", async () => {
    const globs = fc.uniqueArray(
      fc.constantFrom("*", "up.*", "up.get_a", "up.drop", "time.*", "*.now", "vault.*", "*a", ""),
      { maxLength: 3 },
    );
    const scopes = globs.map((all) => all.map((glob) => `tools:${glob}`));
    const authorised = fc.uniqueArray(fc.constantFrom("*", "get_*", "drop", "none"), { maxLength: 2 });
    await fc.assert(
      fc.asyncProperty(globs, scopes, authorised, async (tools, held, granted) => {
        catalogue.put(1, origin("up"), granted, [tool("get_a"), tool("drop")], call);
        const by = { tools, scopes: held };
        const reachable = names(await registry.reachable(1, by));
        for (const name of ["up.get_a", "up.drop", "time.now"]) {
          expect(codeOf(() => registry.find(1, [name], by)) === "found").toBe(reachable.includes(name));
          expect(registry.allows(1, name, by)).toBe(reachable.includes(name));
        }
      }),
      { numRuns: 300 },
    );
  });
});

test("a model sees the texts of an answer, and only the existence of everything else", () => {
  expect(
    textOf({
      content: [
        { type: "text", text: "one" },
        { type: "resource", resource: { uri: "file:///a", text: "two" } },
        { type: "resource_link", uri: "file:///b" },
        { type: "image", mimeType: "image/png", data: "AAAA" },
        { type: "audio" },
      ],
    }),
  ).toBe("one\ntwo\n[resource_link: file:///b]\n[image image/png]\n[audio]");
});
