/** Batches (version 2025-03-26): each member counts as if it had been sent alone. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type Client, connect, request } from "./support.ts";

const MIB = 1024 * 1024;

describe("the reads of a batch", () => {
  let gateway: TestGateway;
  let client: Client;
  let uri: string;
  beforeAll(async () => {
    gateway = await startGateway();
    client = await connect(gateway, { version: "2025-03-26" });
    const body = { title: "d", scope: "a", text: "t".repeat(12 * MIB) };
    uri = `vault://${(await gateway.call("POST", "/v1/vault/documents", { body })).body.id}`;
  }, 60_000);
  afterAll(() => gateway.stop());

  const batch = (count: number) => Array.from({ length: count }, () => request("resources/read", { uri }));

  test("are answered one after another, so one body has one document in memory at a time", async () => {
    const listed = request("resources/templates/list");
    const { messages } = await client.post([...batch(4), listed]);
    // The list does not have to wait, but its turn is last.
    expect(messages.at(-1).id).toBe(listed.id);
    expect(messages.slice(0, 4).map(({ result }) => result.contents[0].text.length)).toEqual(
      Array(4).fill(12 * MIB),
    );
  });

  test("take no more than their workspace's share of the memory for answers, even as JSON", async () => {
    const { status, last } = await client.post(batch(8), { headers: { accept: "application/json" } });
    expect([status, last.code]).toEqual([429, "rate_limited"]);
    const whole = await client.post(batch(2), { headers: { accept: "application/json" } });
    expect(whole.messages.map(({ result }) => result.contents[0].text.length)).toEqual([12 * MIB, 12 * MIB]);
  });
});
