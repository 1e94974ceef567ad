/** What is inspected in a request, and what is passed on byte for byte. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readChatRequest } from "../../src/dialects/chat/request.ts";
import {
  edited,
  elementsOf,
  findMembers,
  MemberNames,
  removals,
  textsWithin,
} from "../../src/dialects/request-bytes.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const read = (text: string) => readChatRequest(bytesOf(text), JSON.parse(text));

/** Members with names that differ not only in case: such requests are refused. */
const members = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }).filter((made) => {
  const names = Object.keys(made).map((name) => name.toUpperCase().toLowerCase());
  return new Set(names).size === names.length;
});

/** The members that are not inspected. */
function unread(value: object): object {
  const read = ["model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"];
  return Object.fromEntries(Object.entries(value).filter(([name]) => !read.includes(name.toLowerCase())));
}

/** JSON as somebody might write it: with white space, and with escapes in names. */
const written = fc.tuple(members, fc.nat({ max: 4 }), fc.boolean()).map(([made, indent, isEscaped]) => {
  const text = JSON.stringify(made, null, indent);
  // A letter that occurs only in strings, and in no escape.
  return isEscaped ? text.replaceAll("m", "\\u006d") : text;
});

test("each member is found where JSON.parse finds it", () => {
  fc.assert(
    fc.property(written, (text) => {
      const value = JSON.parse(text) as Record<string, unknown>;
      const names = Object.keys(value);
      const bytes = bytesOf(text);
      const { spans, close } = findMembers(bytes, new MemberNames(names));
      expect([...spans.keys()].sort()).toEqual([...names].sort());
      for (const [name, { start, end }] of spans) {
        expect(JSON.parse(Buffer.from(bytes.subarray(start, end)).toString())).toEqual(value[name]);
      }
      expect(bytes[close]).toBe("}".charCodeAt(0));
    }),
  );
});

test("only the model and the request for usage are changed", () => {
  const messages = fc.array(fc.record({ role: fc.constant("user"), content: fc.string() }));
  fc.assert(
    fc.property(written, messages, fc.boolean(), fc.string({ minLength: 1 }), (other, list, stream, name) => {
      const rest = unread(JSON.parse(other));
      const value = { ...rest, messages: list, model: "tier:1", stream };
      const text = JSON.stringify(value);
      const sent = Buffer.from(read(text).bytesFor(name, `up/${name}`)).toString();
      expect(JSON.parse(sent)).toEqual({
        ...value,
        model: name,
        ...(stream ? { stream_options: { ...JSON.parse(text).stream_options, include_usage: true } } : {}),
      });
      if (!stream) expect(sent).toBe(text.replace('"tier:1"', () => JSON.stringify(name)));
    }),
  );
});

describe("a request is refused that", () => {
  test.each([
    ["names the model twice", '{"model":"a","model":"b"}'],
    ["names it twice, once with escapes", '{"model":"a","mod\\u0065l":"b"}'],
    ["specifies twice whether it streams", '{"model":"a","stream":false,"stream":true}'],
    ["is a list", '[{"model":"a"}]'],
    ["is a text", '"{}"'],
  ])("%s", (_, text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: "invalid_json" }));
  });
});

test("a member inside another one is ignored", () => {
  const text = '{"a":{"model":"x"},"b":["model"],"model" : "y" , "c":"}"}';
  expect(read(text).model).toBe("y");
  expect(Buffer.from(read(text).bytesFor("z", "up/z")).toString()).toBe(text.replace('"y"', '"z"'));
});

test("edits are made in any order", () => {
  const bytes = bytesOf("abcdef");
  const edits = [
    { start: 4, end: 6, text: "Z" },
    { start: 0, end: 1, text: "" },
    { start: 2, end: 2, text: "-" },
  ];
  expect(Buffer.from(edited(bytes, edits)).toString()).toBe("b-cdZ");
});

describe("texts within", () => {
  const names = new MemberNames(["container", "file_ids"]);
  const found = (text: string) =>
    [...textsWithin(bytesOf(text), names, new Set(["metadata"]))].map(({ name, text: each }) => [name, each]);

  test.each([
    ['{"container":"a"}', [["container", "a"]]],
    ['{"container" : "a" , "x":"b"}', [["container", "a"]]],
    ['{"file_ids":["a", 1, {"x":"no"}, ["no"], "b"],"x":"no"}', ["a", "b"]],
    ['{"x":[{"container":{"type":"no","file_ids":["a"]}}]}', ["a"]],
    ['{"container":1,"x":"no"}', []],
    ['{"metadata":{"container":"no"},"container":"a"}', ["a"]],
    ['{"Container":"a","cont\\u0061iner":"b","container":"c"}', ["a", "b", "c"]],
    ['["container","a"]', []],
    ['{"x":"container","y":"no"}', []],
    ['{"container":{"container":["a"]},"x":"no"}', ["a"]],
  ] as const)("%s", (text, expected) => {
    expect(
      found(text).map(([name, each]) => (typeof expected[0] === "object" ? [name, each] : each)),
    ).toEqual(expected as unknown as string[]);
  });

  test.each([
    ['{"container":{"id":"a","x":{"id":"no"},"y":["no"]},"id":"no"}', ["a"]],
    ['{"container":{"x":{"container":null},"i\\u0064":"a","ID":"b"}}', ["a", "b"]],
    ['{"container":[{"id":"no"}],"file_ids":{"id":"no"},"x":{"id":"no"}}', []],
  ] as const)("%s, where a container may be an object", (text, expected) => {
    const texts = textsWithin(bytesOf(text), names, new Set(["metadata"]), new Set(["container"]));
    expect([...texts].map((each) => each.text)).toEqual([...expected]);
  });

  test("are found in one pass, however deeply the value is nested", () => {
    const depth = 90;
    const text = `${'{"container":['.repeat(depth)}${"1".repeat(100_000)}${"]}".repeat(depth)}`;
    let read = 0;
    const counting = new Proxy(Buffer.from(text), {
      get(target, property) {
        if (typeof property === "string" && /^\d+$/.test(property)) read++;
        const value = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    expect([...textsWithin(counting, names, new Set())]).toEqual([]);
    expect(read).toBeLessThan(10 * text.length);
  });
});

/** Pairs each value with whether it is removed. */
const marked = <Value>(value: fc.Arbitrary<Value>) => fc.tuple(value, fc.boolean());

test("an array without some of its elements is still JSON, and the other elements are unchanged", () => {
  const lists = fc.tuple(fc.array(marked(fc.jsonValue())), fc.nat({ max: 3 }));
  fc.assert(
    fc.property(lists, ([list, indent]) => {
      const bytes = bytesOf(
        JSON.stringify({ before: [1], list: list.map(([value]) => value) }, null, indent),
      );
      const span = findMembers(bytes, new MemberNames(["list"])).spans.get("list");
      const elements = span ? elementsOf(bytes, span) : [];
      const removed = elements.filter((_, index) => list[index]?.[1]);
      const sent = edited(bytes, removals(bytes, removed));
      const kept = list.filter(([, isRemoved]) => !isRemoved).map(([value]) => value);
      expect(JSON.parse(Buffer.from(sent).toString())).toEqual(
        JSON.parse(JSON.stringify({ before: [1], list: kept })),
      );
      if (removed.length === 0) expect(Buffer.from(sent)).toEqual(Buffer.from(bytes));
    }),
  );
});

test("an object without some of its members is still JSON, and the other members are unchanged", () => {
  fc.assert(
    fc.property(members, fc.nat({ max: 3 }), fc.array(fc.boolean()), (value, indent, marks) => {
      const names = Object.keys(value);
      const bytes = bytesOf(JSON.stringify({ inner: value }, null, indent));
      const start = findMembers(bytes, new MemberNames(["inner"])).spans.get("inner")?.start;
      const gone = names.filter((_, index) => marks[index]);
      const { spans } = findMembers(bytes, new MemberNames(gone), start);
      const removed = [...spans.values()].map(({ nameStart, end }) => ({ start: nameStart, end }));
      const sent = JSON.parse(Buffer.from(edited(bytes, removals(bytes, removed))).toString());
      expect(Object.keys(sent.inner)).toEqual(names.filter((name) => !gone.includes(name)));
    }),
  );
});
