import { describe, expect, test } from "bun:test";
import { OperatorError } from "../../../src/base/errors.ts";
import type { OperatorApi } from "../../../src/cli/operator.ts";
import { checkScope, readPairs } from "../../../src/cli/vault/arguments.ts";
import { knownDocuments } from "../../../src/cli/vault/known.ts";
import { UploadProgress } from "../../../src/cli/vault/progress.ts";
import { documentsFault, send, UploadInterrupted } from "../../../src/cli/vault/send.ts";
import { lineOf, linesOf } from "../../../src/cli/vault/text.ts";

describe("key=value", () => {
  test("is text, and key:=value a number, true or false", () => {
    const pairs = readPairs("--filter", [
      "team=support",
      "year:=2026",
      "final:=true",
      "version=1.10",
      "e=",
      "u=a=b",
    ]);
    expect(pairs).toEqual({ team: "support", year: 2026, final: true, version: "1.10", e: "", u: "a=b" });
    expect(Object.keys(readPairs("--filter", ["__proto__=x"]))).toEqual(["__proto__"]);
  });

  test("a key may have spaces and colons", () => {
    expect(readPairs("--metadata", ["Due date=May", "dc:year:=2026"])).toEqual({
      "Due date": "May",
      "dc:year": 2026,
    });
  });

  test.each(["team", "=x", " a=x", "n:=soon", 'n:="text"', "n:=", "n:=[1]"])("%s is wrong usage", (pair) => {
    expect(() => readPairs("--filter", [pair])).toThrow(OperatorError);
  });

  test("a repeated key is wrong usage", () => {
    expect(() => readPairs("--metadata", ["a=1", "a=2"])).toThrow('--metadata gives the key "a" twice');
  });
});

test("a scope is a path with only one spelling", () => {
  for (const scope of ["support", "legal/contracts", "/"]) expect(() => checkScope(scope)).not.toThrow();
  for (const scope of ["", "Support", "/support", "a//b", "a/../b"])
    expect(() => checkScope(scope)).toThrow("--scope");
});

describe("text on a terminal", () => {
  test("contains nothing that moves the cursor, changes colours or reverses the direction", () => {
    expect(lineOf("a\u001B[31mred\u001B]0;title\u0007\n b\u202Ec\u009B2J")).toBe("a[31mred]0;title bc2J");
    expect(linesOf("one\u001B[2J\r\ntwo\u0000", 80, 6)).toEqual(["one[2J", "two"]);
  });

  test("is cut to columns, of which some characters take two", () => {
    expect(lineOf("abcdef", 4)).toBe("abc…");
    expect(Bun.stringWidth(lineOf("日本語日本語", 7))).toBeLessThanOrEqual(7);
  });

  test("is wrapped, without empty lines, and reports if there was more", () => {
    expect(linesOf("one two three\n\n\nfour", 8, 6)).toEqual(["one two", "three", "four"]);
    const lines = linesOf("word ".repeat(100), 20, 6);
    expect(lines).toHaveLength(6);
    expect(lines.at(-1)).toEndWith(" …");
    for (const line of linesOf("x".repeat(500), 20, 6)) expect(line.length).toBeLessThanOrEqual(20);
  });
});

describe("progress", () => {
  function progress(total: number, isTTY: boolean) {
    const written: string[] = [];
    let now = 0;
    const to = { isTTY, columns: 30, write: (text: string) => written.push(text) };
    return { written, shown: new UploadProgress(total, to, () => now), pass: (ms: number) => (now += ms) };
  }

  test("is one line on a terminal, which fits it and makes room for permanent lines", () => {
    const { written, shown, pass } = progress(340, true);
    shown.step(12, "3 unchanged", "docs/a.md");
    shown.step(13, "3 unchanged", "docs/too-soon.md");
    pass(100);
    shown.step(14, "", "docs/a/very/long/path/to/a/file.md");
    shown.say("failed: b.md: is empty");
    shown.end();
    expect(written).toEqual([
      "\r\u001B[2K[12/340] 3 unchanged  docs/a…",
      "\r\u001B[2K[14/340]  docs/a/very/long/p…",
      "\r\u001B[2K",
      "failed: b.md: is empty\n",
    ]);
  });

  test("is a line every hundred files elsewhere", () => {
    const { written, shown } = progress(250, false);
    for (let done = 1; done <= 250; done++) shown.step(done, "1 failed", "a.md");
    shown.end();
    expect(written).toEqual(["[100/250] 1 failed\n", "[200/250] 1 failed\n"]);
  });
});

/** A fake gateway that returns these answers in order. */
function api(...answers: readonly (Response | Error)[]) {
  const asked: string[] = [];
  const left = [...answers];
  const fake: OperatorApi = {
    async fetch(method, path) {
      asked.push(`${method} ${path}`);
      const answer = left.shift() ?? new Response("{}");
      if (answer instanceof Error) throw answer;
      return answer;
    },
    json: () => Promise.reject(new Error("not asked")),
  };
  return { fake, asked };
}

const problem = (status: number, detail: string, headers: Record<string, string> = {}) =>
  Response.json({ detail, code: "c" }, { status, headers });
const never = new AbortController().signal;

describe("a call", () => {
  test("is made again if the gateway asks to wait, but not if it only refuses", async () => {
    const busy = () => problem(429, "busy", { "retry-after": "0" });
    const again = api(
      busy(),
      problem(503, "full", { "retry-after": "0" }),
      new Response("{}", { status: 201 }),
    );
    expect((await send(again.fake, "POST", "/p", {}, never)).status).toBe(201);
    expect(again.asked).toHaveLength(3);
    const once = api(problem(503, "no"), busy());
    expect((await send(once.fake, "POST", "/p", {}, never)).status).toBe(503);
    expect(once.asked).toHaveLength(1);
  });

  test("that is waiting ends at once when the user asks to stop", async () => {
    const stop = new AbortController();
    const sent = send(api(problem(429, "busy", { "retry-after": "50" })).fake, "POST", "/p", {}, stop.signal);
    setTimeout(() => stop.abort(new UploadInterrupted()), 10);
    await expect(sent).rejects.toBeInstanceOf(UploadInterrupted);
  });

  test("to a missing gateway reports it", async () => {
    const { fake } = api(Object.assign(new Error("long and technical"), { code: "ECONNRESET" }));
    await expect(send(fake, "GET", "/p", undefined, never)).rejects.toThrow("no longer answers (ECONNRESET)");
  });
});

test.each([
  [422, "/text: contains no text", "contains no text"],
  [422, "/content_base64: is not a PDF", "is not a PDF"],
  [413, "A body may have 52428800 bytes.", "A body may have 52428800 bytes."],
  [500, "Something went wrong here.", "Something went wrong here."],
  [422, "/scope: must match", undefined],
  [422, "/metadata: is too much", undefined],
  [404, "There is no workspace named x.", undefined],
  [403, "no", undefined],
])("%i %s: the document's fault is %p", async (status, detail, fault) => {
  expect(await documentsFault(problem(status, detail))).toBe(fault as string);
});

describe("the documents of sources", () => {
  const document = (id: string, source_uri: string | null) => ({ id, source_uri });
  const page = (data: object[], next_cursor: string | null = null) => Response.json({ data, next_cursor });

  test("are looked up one by one if there are few", async () => {
    const { fake, asked } = api(page([document("doc_1", "file:///a%20b")]), page([]));
    const known = await knownDocuments(fake, ["file:///a%20b", "file:///c"], never);
    expect([...known.keys()]).toEqual(["file:///a%20b"]);
    expect(asked[0]).toBe("GET /v1/vault/documents?limit=1&source_uri=file%3A%2F%2F%2Fa%2520b");
  });

  test("are found in the whole list if there are many, the newest of each", async () => {
    const sources = Array.from({ length: 51 }, (_, index) => `file:///${index}`);
    const { fake, asked } = api(
      page(
        [document("doc_9", "file:///7"), document("doc_8", "file:///other"), document("doc_7", null)],
        "next",
      ),
      page([document("doc_2", "file:///7"), document("doc_1", "file:///8")]),
    );
    const known = await knownDocuments(fake, sources, never);
    expect([...known].map(([source, { id }]) => [source, id])).toEqual([
      ["file:///7", "doc_9"],
      ["file:///8", "doc_1"],
    ]);
    expect(asked).toEqual([
      "GET /v1/vault/documents?limit=200",
      "GET /v1/vault/documents?limit=200&cursor=next",
    ]);
  });
});
