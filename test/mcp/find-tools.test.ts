import { describe, expect, test } from "bun:test";
import { findTools } from "../../src/mcp/find-tools.ts";
import type { ToolView } from "../../src/mcp/tool-view.ts";

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
  (await findTools(tools, query, limit)).map(({ title }) => title);

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
    expect(await findTools(many, "alike")).toEqual(many.slice(0, 10));
    expect(await findTools(many, "alike", 3)).toEqual(many.slice(0, 3));
  });

  test("finds words of other scripts", async () => {
    expect(await findTools([tool("up.wetter", "Sagt, ob es Regen gibt: дождь")], "дождь")).toHaveLength(1);
  });

  test("returns fewer if they are long, but always at least one", async () => {
    const long = (length: number) =>
      Array.from({ length: 20 }, (_, at) => ({
        ...tool(`up.long_${String(at).padStart(2, "0")}`, "alike"),
        inputSchemaJson: JSON.stringify({ type: "object", description: "x".repeat(length) }),
      }));
    expect(await findTools(long(100_000), "alike")).toHaveLength(2);
    expect(await findTools(long(1_000_000), "alike")).toHaveLength(1);
  });
});
