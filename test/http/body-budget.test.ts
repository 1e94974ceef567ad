import { expect, test } from "bun:test";
import { BodyBudget, readJson } from "../../src/http/body.ts";

const KIB = 1024;
const json = (body: string | ReadableStream<Uint8Array>, length?: number) =>
  new Request("http://gate/", {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      ...(length === undefined ? {} : { "content-length": String(length) }),
    },
  });
/** A body of which one piece has come, and then nothing more until it is ended. */
function trickle(piece: number) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new Uint8Array(piece).fill(32));
      await promise;
      controller.enqueue(new TextEncoder().encode("{}"));
      controller.close();
    },
  });
  return { body, end: resolve };
}

test("bodies that come at once share a budget; one past it is refused with 429, and room comes back", async () => {
  const budget = new BodyBudget(1_000 * KIB);
  const slow = [trickle(400 * KIB), trickle(400 * KIB)];
  const reading = slow.map(({ body }) => readJson(json(body), 10_000 * KIB, budget));
  await Bun.sleep(1);
  expect(budget.held).toBe(800 * KIB);
  const refused = readJson(json(trickle(400 * KIB).body), 10_000 * KIB, budget);
  await expect(refused).rejects.toMatchObject({ code: "rate_limited", headers: { "Retry-After": "1" } });
  expect(budget.held).toBe(800 * KIB);
  for (const { end } of slow) end();
  expect(await Promise.all(reading)).toEqual([{}, {}]);
  expect(budget.held).toBe(0);
});

test("a small body counts as what it declares, and gives it back however it ends", async () => {
  const budget = new BodyBudget(1_000);
  for (const text of ['{"a":1}', "{", ""]) {
    await readJson(json(text, text.length), 10_000, budget).catch(() => {});
    expect(budget.held).toBe(0);
  }
  await expect(readJson(json("[]", 1_001), 10_000, budget)).rejects.toMatchObject({ code: "rate_limited" });
  await expect(readJson(json(trickle(20_000).body), 10_000, budget)).rejects.toMatchObject({
    code: "body_too_large",
  });
  expect(budget.held).toBe(0);
});
