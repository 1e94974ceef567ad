import { describe, expect, test } from "bun:test";
import { findTools } from "../../src/mcp/find-tools.ts";
import type { ToolView } from "../../src/mcp/tool-view.ts";

const tool = (title: string, description = ""): ToolView => ({
  name: title.replace(".", "__"),
  title,
  description,
  inputSchema: { type: "object" },
});
const tools = [
  tool("github.create_issue", "Opens an issue in a repository."),
  tool("github.searchOpenIssues", "Finds issues by words."),
  tool("jira.issue_search", "Finds tickets."),
  tool("time.now", "The present time in UTC."),
  tool("vault.search", "Searches the documents that you may see."),
  tool("weather.forecast", "Says whether it will rain tomorrow."),
];
const found = (query: string, limit?: number) => findTools(tools, query, limit).map(({ title }) => title);

describe("finding tools", () => {
  test.each([
    ["nothing in common", "quantum chromodynamics"],
    ["stop words alone", "the of and in"],
    ["signs alone", "!? --"],
    ["spaces", "   "],
  ])("finds none with %s", (_, query) => {
    expect(found(query)).toEqual([]);
  });

  test.each([
    ["by a word of the description", "rain", ["weather.forecast"]],
    ["by another form of the word", "raining", ["weather.forecast"]],
    ["by a word of a name in camel case", "open", ["github.create_issue", "github.searchOpenIssues"]],
    ["by the connector's name", "jira", ["jira.issue_search"]],
    ["in capitals", "UTC", ["time.now"]],
  ])("%s", (_, query, expected) => {
    expect(found(query).sort()).toEqual([...expected].sort());
  });

  test("puts first what shares most, and a word of the name before one of the description", () => {
    expect(found("create an issue")[0]).toBe("github.create_issue");
    expect(found("open")[0]).toBe("github.searchOpenIssues");
    expect(found("search documents")[0]).toBe("vault.search");
  });

  test("answers as many as it may, equals in the order of their names", () => {
    const many = Array.from({ length: 30 }, (_, at) =>
      tool(`up.same_${String(at).padStart(2, "0")}`, "alike"),
    );
    expect(findTools(many, "alike")).toEqual(many.slice(0, 10));
    expect(findTools(many, "alike", 3)).toEqual(many.slice(0, 3));
  });

  test("finds words of other scripts", () => {
    expect(findTools([tool("up.wetter", "Sagt, ob es Regen gibt: дождь")], "дождь")).toHaveLength(1);
  });
});
