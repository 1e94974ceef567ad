import { describe, expect, test } from "bun:test";
import { probeOllama } from "../../src/config/ollama.ts";

const answer = (body: string, init?: ResponseInit) => async () => new Response(body, init);
const models = (...names: unknown[]) => JSON.stringify({ models: names.map((name) => ({ name, size: 1 })) });

test("an Ollama's models are listed", async () => {
  const asked: string[] = [];
  const fetch = async (url: string) => {
    asked.push(url);
    return new Response(models("llama3.2:latest", "qwen3:8b"));
  };
  expect(await probeOllama({ fetch })).toEqual(["llama3.2:latest", "qwen3:8b"]);
  expect(await probeOllama({ fetch, baseUrl: "http://gpu:1" })).toHaveLength(2);
  expect(asked).toEqual(["http://127.0.0.1:11434/api/tags", "http://gpu:1/api/tags"]);
});

test("no more than a hundred are accepted", async () => {
  const many = Array.from({ length: 300 }, (_, index) => `m${index}`);
  expect(await probeOllama({ fetch: answer(models(...many)) })).toEqual(many.slice(0, 100));
});

describe("there are none when", () => {
  test.each([
    ["nothing listens", () => Promise.reject(new TypeError("refused"))],
    [
      "it throws at once",
      () => {
        throw new Error("no");
      },
    ],
    ["the status is not 200", answer(models("a"), { status: 404 })],
    ["the body is not JSON", answer("<html>")],
    ["the body is empty", answer("")],
    ["it has another shape", answer('{"models":"a"}')],
    ["a name is not text", answer(models(5))],
    ["a name is too long", answer(models("x".repeat(201)))],
    ["the answer is too large", answer(`${" ".repeat(1024 * 1024)}${models("a")}`)],
  ])("%s", async (_, fetch) => {
    expect(await probeOllama({ fetch })).toEqual([]);
  });

  test("the answer does not come in time, at once or in the middle of the body", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        if (request.url.includes("/slow")) await new Promise(() => {});
        return new Response(
          new ReadableStream({
            async pull(controller) {
              controller.enqueue(new TextEncoder().encode(" "));
              await Bun.sleep(20);
            },
          }),
        );
      },
    });
    for (const path of ["/slow", "/drip"]) {
      const baseUrl = `http://127.0.0.1:${server.port}${path}`;
      expect(await probeOllama({ fetch: globalThis.fetch, timeoutMs: 60, baseUrl })).toEqual([]);
    }
    await server.stop(true);
  });
});
