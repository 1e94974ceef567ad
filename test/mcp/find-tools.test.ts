import { describe, expect, test } from "bun:test";
import { findTools } from "../../src/mcp/find-tools.ts";
import type { ToolView } from "../../src/mcp/tool-view.ts";
import { mostPerTurn } from "../support/loop-turns.ts";

const tool = (title: string, description = ""): ToolView => ({
  name: title.replace(".", "__"),
  title,
  description,
  inputSchemaJson: '{"type":"object"}',
});
const tools = [
  tool("github.create_issue", "Opens an issue in a repository."),
  tool("github.searchOpenIssues", "Finds issues by words."),
  tool("jira.issue_search", "Finds tickets."),
  tool("time.now", "The present time in UTC."),
  tool("vault.search", "Searches the documents that you may see."),
  tool("weather.forecast", "Says whether it will rain tomorrow."),
];
const found = async (query: string, limit?: number) =>
  (await findTools(1, tools, query, limit)).map(({ title }) => title);

describe("many searches at once", () => {
  /** Counts how often descriptions are read. */
  function counted(amount: number) {
    const reads = { count: 0 };
    const tools = Array.from({ length: amount }, (_, at) => ({
      ...tool(`up.tool_${at}`),
      get description() {
        reads.count += 1;
        return `word${at} `.repeat(100);
      },
    }));
    return { reads, tools };
  }

  test("share the turns of the event loop", async () => {
    const { reads, tools } = counted(5_000);
    const searches = Array.from({ length: 60 }, () => findTools(1, tools, "word1"));
    // One turn is as long as finding the words of about 80 descriptions.
    expect(await mostPerTurn(Promise.all(searches), () => reads.count)).toBeLessThan(1_000);
  });

  test("split the words of a tool once", async () => {
    const { reads, tools } = counted(1_000);
    await findTools(1, tools, "word1");
    const once = reads.count;
    await Promise.all(Array.from({ length: 20 }, () => findTools(1, tools, "word2")));
    // Each search also measures the tool that it found.
    expect(reads.count).toBeLessThan(once + 20 * 10);
  });

  test("do not delay another workspace's search until they are done", async () => {
    const { tools } = counted(5_000);
    await findTools(1, tools, "word1");
    const ended: string[] = [];
    const search = async (workspaceId: number, name: string) => {
      await findTools(workspaceId, tools, "word1");
      ended.push(name);
    };
    const own = Array.from({ length: 40 }, () => search(1, "own"));
    await Promise.all([...own, search(2, "other")]);
    expect(ended.indexOf("other")).toBeLessThan(10);
  });
});

describe("finding tools", () => {
  test.each([
    ["nothing in common", "quantum chromodynamics"],
    ["only stop words", "the of and in"],
    ["signs alone", "!? --"],
    ["spaces", "   "],
  ])("finds none with %s", async (_, query) => {
    expect(await found(query)).toEqual([]);
  });

  test.each([
    ["by a word of the description", "rain", ["weather.forecast"]],
    ["by another form of the word", "raining", ["weather.forecast"]],
    ["by a word of a name in camel case", "open", ["github.create_issue", "github.searchOpenIssues"]],
    ["by the connector's name", "jira", ["jira.issue_search"]],
    ["in capitals", "UTC", ["time.now"]],
  ])("%s", async (_, query, expected) => {
    expect((await found(query)).sort()).toEqual([...expected].sort());
  });

  test("ranks by shared words, and a word of the name before one of the description", async () => {
    expect((await found("create an issue"))[0]).toBe("github.create_issue");
    expect((await found("open"))[0]).toBe("github.searchOpenIssues");
    expect((await found("search documents"))[0]).toBe("vault.search");
  });

  test("returns as many as allowed, with equals ordered by name", async () => {
    const many = Array.from({ length: 30 }, (_, at) =>
      tool(`up.same_${String(at).padStart(2, "0")}`, "alike"),
    );
    expect(await findTools(1, many, "alike")).toEqual(many.slice(0, 10));
    expect(await findTools(1, many, "alike", 3)).toEqual(many.slice(0, 3));
  });

  test("finds words of other scripts", async () => {
    expect(await findTools(1, [tool("up.wetter", "Sagt, ob es Regen gibt: дождь")], "дождь")).toHaveLength(1);
  });

  test("returns fewer if they are long, but always at least one", async () => {
    const long = (length: number) =>
      Array.from({ length: 20 }, (_, at) => ({
        ...tool(`up.long_${String(at).padStart(2, "0")}`, "alike"),
        inputSchemaJson: JSON.stringify({ type: "object", description: "x".repeat(length) }),
      }));
    expect(await findTools(1, long(100_000), "alike")).toHaveLength(2);
    expect(await findTools(1, long(1_000_000), "alike")).toHaveLength(1);
  });
});
