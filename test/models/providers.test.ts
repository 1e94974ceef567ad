import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createProviders } from "../../src/models/providers/index.ts";

test("at most a thousand of the models that clients name are remembered", async () => {
  const up = { kind: "openai-compatible", baseUrl: "http://127.0.0.1:1/v1", timeoutMs: 1_000 } as const;
  const provider = (await createProviders(new Map([["up", up]]), systemClock)).get("up");
  const first = provider?.model("m0");
  expect(provider?.model("m0")).toBe(first);
  for (let n = 1; n < 1_000; n++) provider?.model(`m${n}`);
  expect(provider?.model("m0")).toBe(first);
  provider?.model("one more");
  expect(provider?.model("m0")).not.toBe(first);
});
