/** How the page of approvals prepares texts written by others before anything is drawn. */
import { describe, expect, test } from "bun:test";
import { diffLines } from "../../../src/console/pages/approvals/diff.ts";
import { countHidden, escaped, hiddenNames, partsOf } from "../../../src/console/pages/approvals/hidden.ts";
import { isSameJson, prettyJson, readArguments } from "../../../src/console/pages/approvals/json.ts";
import { EMPTY_STORY, type StoryEvent, tell } from "../../../src/console/pages/approvals/story.ts";

describe("invisible characters", () => {
  test.each<[what: string, text: string, shown: string]>([
    ["a right-to-left override", "a\u202eb", "a\\u202eb"],
    ["zero width characters", "a\u200b\u200d\u2060\ufeffb", "a\\u200b\\u200d\\u2060\\ufeffb"],
    ["a no-break space", "a\u00a0b", "a\\u00a0b"],
    ["control characters", "a\u0000\u001b\u009bb", "a\\u0000\\u001b\\u009bb"],
    ["letters of the tags block, which models read", "a\u{e0041}b", "a\\udb40\\udc41b"],
    ["a variation selector", "a\ufe0fb", "a\\ufe0fb"],
    ["a filler that counts as a letter", "a\u3164b", "a\\u3164b"],
    ["an empty Braille pattern", "a\u2800b", "a\\u2800b"],
    ["half of a surrogate pair", "a\ud800b", "a\\ud800b"],
    ["a private-use character", "a\ue000b", "a\\ue000b"],
    ["a line separator", "a\u2028b", "a\\u2028b"],
    ["a carriage return alone", "a\rb", "a\\u000db"],
  ])("%s is an escape", (_what, text, shown) => {
    expect(escaped(text)).toBe(shown);
    expect(
      partsOf(text)
        .map((part) => part.text)
        .join(""),
    ).toBe(text);
    expect(countHidden(text)).toBeGreaterThan(0);
  });

  test.each(["plain text", "line\nline\ttab", "line\r\nline", "größer 漢字 עברית العربية 😀", ""])(
    "%j is left unchanged",
    (text) => {
      expect(escaped(text)).toBe(text);
      expect(countHidden(text)).toBe(0);
    },
  );

  test("get a name, or their number if the name is little known", () => {
    expect(hiddenNames("\u202e\u{e0041}")).toBe("right-to-left override, U+E0041");
  });

  test("are escaped in JSON, which keeps its value", () => {
    const value = { "a\u202e": "b\u{e0041}\\u202e\n" };
    expect(prettyJson(value)).not.toContain("\u202e");
    expect(JSON.parse(prettyJson(value))).toEqual(value);
  });
});

describe("arguments", () => {
  test.each<[string, string]>([
    ["", "not valid JSON"],
    ["{", "not valid JSON"],
    ["[]", "an object"],
    ["null", "an object"],
    ['"text"', "an object"],
  ])("%j are not accepted", (text, why) => {
    const read = readArguments(text);
    expect("error" in read && read.error).toContain(why);
  });

  test("are the same whatever the order of their keys, but not if a value differs", () => {
    expect(isSameJson({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 })).toBe(true);
    expect(isSameJson({ a: [1, 2] }, { a: [2, 1] })).toBe(false);
    expect(isSameJson({ a: 1 }, { a: "1" })).toBe(false);
    expect(isSameJson({ a: 1 }, { a: 1, b: null })).toBe(false);
  });
});

describe("lines that have changed", () => {
  test.each<[string, string, string]>([
    ["a\nb\nc", "a\nb\nc", " a| b| c"],
    ["a\nb\nc", "a\nx\nc", " a|-b|+x| c"],
    ["a\nc", "a\nb\nc", " a|+b| c"],
    ["a\nb\nc", "a\nc", " a|-b| c"],
    ["a\nb\na\nb", "b\na", "-a| b| a|-b"],
    ["", "a", "-|+a"],
  ])("%j to %j", (before, after, lines) => {
    const marks = { same: " ", removed: "-", added: "+" };
    expect(
      diffLines(before, after)
        .map(({ kind, text }) => marks[kind] + text)
        .join("|"),
    ).toBe(lines);
  });

  test("are all shown for long texts that have nothing in common", () => {
    const before = Array.from({ length: 2_000 }, (_, line) => `a${line}`).join("\n");
    const after = Array.from({ length: 2_000 }, (_, line) => `b${line}`).join("\n");
    const lines = diffLines(before, after);
    expect(lines.filter(({ kind }) => kind === "removed").length).toBe(2_000);
    expect(lines.filter(({ kind }) => kind === "added").length).toBe(2_000);
  });
});

describe("the history of a task", () => {
  const read = (...events: readonly [StoryEvent, Record<string, unknown>][]) =>
    events.reduce((story, [name, data]) => tell(story, "call_2", name, data), EMPTY_STORY);
  const look = { id: "call_1", tool: "desk.look", arguments: {} };

  test("has a step for each answer of the model, with its calls and their results", () => {
    const story = read(
      ["output.delta", { text: "first " }],
      ["output.delta", { text: "I look" }],
      ["tool.call", look],
      ["tool.result", { id: "call_1", status: "failed" }],
      ["output.delta", { text: "then" }],
      ["tool.call", { id: "call_2", tool: "desk.send", arguments: { to: "all" } }],
      ["approval.required", { call_id: "call_2", arguments: { to: "all" } }],
      ["output.delta", { text: "what came after the decision" }],
    );
    expect(story.steps.map(({ text }) => text)).toEqual(["first I look", "then"]);
    expect(story.steps[0]?.calls).toEqual([{ ...look, status: "failed" }]);
    expect(story).toMatchObject({ asked: { to: "all" }, isWhole: true });
  });

  test("leaves out discarded answers, but keeps what tools had answered before", () => {
    const story = read(
      ["tool.call", look],
      ["tool.result", { id: "call_1", status: "succeeded" }],
      ["output.reset", {}],
      ["output.delta", { text: "half" }],
      ["output.reset", {}],
      ["output.delta", { text: "whole" }],
    );
    expect(story.steps.map(({ text, calls }) => [text, calls.length])).toEqual([
      ["", 1],
      ["whole", 0],
    ]);
  });

  test("shows once a call that two runs have reached, and skips the approval of another call", () => {
    const story = read(
      ["tool.call", look],
      ["approval.required", { call_id: "call_1", arguments: {} }],
      ["tool.call", look],
    );
    expect(story.steps.flatMap(({ calls }) => calls)).toHaveLength(1);
    expect(story.isWhole).toBe(false);
  });
});
