import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

type Json = string | number | null | readonly Json[] | { readonly [key: string]: Json };
type Entry = { readonly [key: string]: Json } & { seq: number; leaf: string; prev: string; ts: string };

/** RFC 8785 for the values in entries, written for the test: keys by UTF-16 code units, integers, strings. */
function canonical(value: Json): string {
  if (typeof value === "string" || value === null) return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new Error(`not an integer: ${value}`);
    return String(value);
  }
  if (Array.isArray(value)) throw new Error("entries hold no lists");
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`;
}

let gateway: TestGateway;
let entries: Entry[];
const bytes = new Map<number, Buffer>();

beforeAll(async () => {
  gateway = await startGateway();
  const { call } = gateway;
  await gateway.agent("agent");
  await finishedTask(gateway, "agent", 'prompt with "quotes", ümlauts, 😀 and \u2028');
  const weird = await gateway.token({
    name: "w",
    person: "Ä \u2028 😀\0",
    role: 'a"b',
    scopes: ["approvals:write"],
  });
  await call("POST", "/v1/agents/agent/stop", { token: weird });
  await call("GET", `/v1/agents/${encodeURIComponent("Ä\0'\"\\😀\u007f")}`);
  await call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 1.5 } } });
  await call("POST", "/v1/tasks", { raw: '{"agent":"agent","prompt":"x","tier":1e21}' });
  await call("POST", "/v1/tasks", { raw: '{"agent":"agent","prompt":"x","tier":9007199254740991}' });
  await call("GET", "/v1/agents", { token: null });
  // Many calls at once, so that several entries share one transaction.
  await Promise.all(Array.from({ length: 60 }, () => call("GET", "/v1/tiers")));
  entries = (await call("GET", "/v1/ledger?limit=200")).body.data;
  for (const { seq } of entries) {
    const { body } = await call("GET", `/v1/ledger/${seq}`);
    bytes.set(seq, Buffer.from(body.bytes, "base64"));
    const { bytes: _, ...shown } = body;
    expect(shown).toEqual(entries[seq - 1]);
  }
});
afterAll(() => gateway.stop());

const sha256 = (...parts: (Uint8Array | string)[]) => {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const part of parts) hasher.update(part);
  return hasher.digest("hex");
};

test("entries are numbered from 1 without gaps", () => {
  expect(entries.length).toBeGreaterThan(70);
  expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index + 1));
});

test("each entry's leaf is SHA-256 over a zero byte and exactly its bytes", () => {
  for (const { seq, leaf } of entries) {
    expect(sha256(Uint8Array.of(0), bytes.get(seq) ?? "")).toBe(leaf);
  }
});

test("each entry names the leaf before it, the first 64 zeros", () => {
  for (const [index, entry] of entries.entries()) {
    expect(entry.prev).toBe(index === 0 ? "0".repeat(64) : (entries[index - 1]?.leaf ?? ""));
  }
});

test("the bytes are canonical JSON of integers and strings, prev in them and leaf not", () => {
  for (const { seq, prev } of entries) {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.get(seq));
    const parsed = JSON.parse(text) as { [key: string]: Json };
    expect(canonical(parsed)).toBe(text);
    expect(parsed).toMatchObject({ prev, seq });
    expect(parsed).not.toHaveProperty("leaf");
    expect(text).not.toContain(":null");
  }
});

test("an entry is read with every field of the contract, null where it has none, and nothing else", () => {
  const fields =
    "seq prev leaf ts phase ref action outcome code channel request_id actor agent tier model task tool " +
    "input_hash output_hash credits oversight detail";
  for (const entry of entries) expect(Object.keys(entry).sort()).toEqual(fields.split(" ").sort());
});

test("times never go backwards, and have milliseconds in UTC", () => {
  const times = entries.map((entry) => entry.ts);
  expect(times).toEqual([...times].sort());
  for (const time of times) expect(new Date(time).toISOString()).toBe(time);
});

describe("texts are in the entries only as salted hashes", () => {
  test("no prompt, no output", () => {
    const all = Buffer.concat([...bytes.values()]).toString();
    expect(all).not.toContain("prompt with");
    expect(all).not.toContain("ümlauts");
    const dispatch = entries.find((entry) => entry.action === "task.dispatch" && entry.outcome === "allowed");
    expect(dispatch?.input_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(dispatch?.input_hash).not.toBe(sha256('prompt with "quotes", ümlauts, 😀 and \u2028'));
  });
  test("the same prompt twice gives two hashes", async () => {
    await gateway.call("POST", "/v1/agents/agent/resume");
    await finishedTask(gateway, "agent", "same");
    await finishedTask(gateway, "agent", "same");
    const { body } = await gateway.call("GET", "/v1/ledger?action=task.dispatch&order=desc&limit=2");
    const [one, two] = body.data.map((entry: Entry) => entry.input_hash);
    expect(one).not.toBe(two);
  });
});

test("an outcome refers to its intent, which came before it", () => {
  const outcomes = entries.filter((entry) => entry.phase === "outcome");
  expect(outcomes.length).toBeGreaterThan(0);
  for (const outcome of outcomes) {
    const intent = entries[Number(outcome.ref) - 1];
    expect(intent).toMatchObject({ phase: "intent", task: outcome.task });
    expect(Number(outcome.ref)).toBeLessThan(outcome.seq);
  }
});
