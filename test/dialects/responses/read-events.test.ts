import { expect, test } from "bun:test";
import { ResponseEvents } from "../../../src/dialects/responses/background/read-events.ts";
import { allEvents } from "../../support/events.ts";

test("the last event of a response is sent in pieces, and the reader's rights are checked before each", async () => {
  const response = { id: "resp_1", status: "completed", output: ["é".repeat(300_000)] };
  const stored = { next: async () => null, close() {} };
  const watched = { begun() {}, over() {} };
  const parts = {
    created: { id: "resp_1" },
    stored,
    ...watched,
    ended: async () => response,
    lastId: async () => 1,
  };
  const reader = new ResponseEvents(parts, 0);
  const all: Uint8Array[] = [];
  for (let next = await reader.next(); next; next = await reader.next()) {
    expect(next.reduce((bytes, part) => bytes + part.length, 0)).toBeLessThanOrEqual(64 * 1_024);
    all.push(...next);
  }
  const events = await allEvents(new Response(Buffer.concat(all)));
  expect(events.map(({ event }) => event)).toEqual(["response.created", "response.completed"]);
  expect(events[1]?.data).toMatchObject({ response });
  const erased = new ResponseEvents(parts, 1);
  await erased.next();
  erased.erased();
  expect(await erased.next()).toBeNull();
  const closed = new ResponseEvents(parts, 1);
  await closed.next();
  await closed.next();
  closed.close();
  expect(await closed.next()).toBeNull();
});
