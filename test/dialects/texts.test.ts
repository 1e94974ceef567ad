/** Prompts and answers of clients' calls: who may read them, and how their entries are found among those of tasks. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ownConnection } from "../support/own-connection.ts";
import { run } from "../tasks/support.ts";
import { type DialectStage, type LedgerRow, openDialectStage } from "./support.ts";

const PROMPT = "Where are the keys?";
let stage: DialectStage;
let intent: LedgerRow;
let outcome: LedgerRow;
/** An intent and an outcome of a task's model call. */
let ofTask: readonly LedgerRow[];
beforeAll(async () => {
  stage = await openDialectStage();
  await stage.gateway.agent("scribe");
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  stage.upstream.script("second", { chunks: ["In the boathouse"], usage });
  await complete(PROMPT);
  const [first, second] = await stage.entries();
  if (!first || !second) throw new Error("the call has no entries");
  [intent, outcome] = [first, second];
  await run(stage.gateway, { agent: "clerk", prompt: "a task of its own" });
  ofTask = (await stage.entries()).slice(2);
});
afterAll(() => stage.stop());

function complete(content: string) {
  const body = { model: "up/second", messages: [{ role: "user", content }] };
  return stage.gateway.call("POST", "/v1/chat/completions", { token: stage.clerk, body });
}

const read = (seq: number | string | undefined, token = stage.gateway.admin) =>
  stage.gateway.call("GET", `/v1/ledger/${seq}/payload`, { token });

test("a text is refused without tasks:read, to another agent's token and to another workspace", async () => {
  const auditor = await stage.gateway.token({ scopes: ["ledger:read"] });
  const refused = await read(intent.seq, auditor);
  expect([refused.status, refused.body.code]).toEqual([403, "scope_missing"]);
  const scribe = await stage.gateway.token({ agent: "scribe", scopes: ["tasks:read"] });
  expect((await read(intent.seq, scribe)).status).toBe(404);
  const other = await stage.gateway.workspace("other");
  expect((await read(intent.seq, other)).status).toBe(404);
});

test("the intent has the prompt and the outcome the answer; each reading is an entry", async () => {
  const prompt = await read(intent.seq);
  expect(prompt.status).toBe(200);
  expect(prompt.body).toMatchObject({ seq: intent.seq, output: null });
  expect(JSON.parse(prompt.body.input.text).messages[0].content).toBe(PROMPT);
  expect(prompt.body.input.characters).toBe(prompt.body.input.text.length);
  const own = await stage.gateway.token({ agent: "clerk", scopes: ["tasks:read"] });
  const answer = await read(outcome.seq, own);
  expect(answer.body.input).toBeNull();
  expect(answer.body.output.text).toContain("In the boathouse");
  const entry = await stage.gateway.call("GET", `/v1/ledger/${answer.headers.get("gatehouse-ledger")}`);
  expect(entry.body).toMatchObject({
    ...{ action: "payload.read", outcome: "succeeded", agent: "clerk", detail: { target_seq: outcome.seq } },
  });
});

test("a long text is cut, and its length given", async () => {
  const long = "k".repeat(300_000);
  const { headers } = await complete(long);
  const { input } = (await read(headers.get("gatehouse-ledger") ?? "")).body;
  expect(input.text).toHaveLength(262_144);
  expect(input.characters).toBeGreaterThan(300_000);
});

test("entries of anything else have no text here: a task's model call, an agent's creation, none at all", async () => {
  expect(ofTask.length).toBeGreaterThan(1);
  for (const seq of [ofTask[0]?.seq, ofTask[1]?.seq, 1, 999_999, "x"]) {
    const { status, body } = await read(seq);
    expect([status, body.code]).toEqual([404, "not_found"]);
  }
});

test("an erased text is null, and its hash stays", async () => {
  const { headers } = await complete("erase me");
  const seq = headers.get("gatehouse-ledger") ?? "";
  const erased = await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`);
  expect(erased.status).toBe(204);
  expect((await read(seq)).body).toEqual({ seq: Number(seq), input: null, output: null });
  expect((await stage.gateway.call("GET", `/v1/ledger/${seq}`)).body.input_hash).toMatch(/^[0-9a-f]{64}$/);
});

test("a text or salt that was changed in the file is never shown: 503 ledger_unavailable", async () => {
  const own = ownConnection(stage.gateway.dataDir);
  const changes = [
    "body = 'another text'",
    "salt = x'00'",
    // The same bytes, with the beginning of the text in the salt.
    "salt = CAST(salt || CAST(substr(body, 1, 3) AS BLOB) AS BLOB), body = substr(body, 4)",
  ];
  for (const change of changes) {
    const { headers } = await complete("do not change me");
    const seq = headers.get("gatehouse-ledger") ?? "";
    own.run(`UPDATE payloads SET ${change} WHERE seq = ? AND kind = 'input'`, [seq]);
    const refused = await read(seq);
    expect([change, refused.status, refused.body.code]).toEqual([change, 503, "ledger_unavailable"]);
    expect(refused.body).not.toHaveProperty("input");
  }
});

test("the ledger filters model calls outside of tasks, in every format but the auditor's bundle", async () => {
  const path = "/v1/ledger?action=model.call&outside_tasks=true";
  const found = (await stage.gateway.call("GET", `${path}&limit=200`)).body.data as LedgerRow[];
  const all = await stage.entries();
  const own = all.filter(({ seq }) => !ofTask.some((entry) => entry.seq === seq));
  expect(found.map(({ seq }) => seq)).toEqual(own.map(({ seq }) => seq));
  expect(own.length).toBeLessThan(all.length);
  const newest = (await stage.gateway.call("GET", `${path}&order=desc&limit=1`)).body.data as LedgerRow[];
  expect(newest.map(({ seq }) => seq)).toEqual([own.at(-1)?.seq ?? 0]);
  const csv = await stage.gateway.call("GET", `${path}&format=csv`);
  expect(csv.body.match(/,model\.call,/g)).toHaveLength(own.length);
  const all200 = (await stage.gateway.call("GET", `${path.replace("true", "false")}&limit=200`)).body.data;
  expect(all200).toHaveLength(all.length);
  const refused = await stage.gateway.call("GET", `${path}&format=article14`);
  expect([refused.status, refused.body.errors?.[0]?.path]).toEqual([422, "/outside_tasks"]);
  // The entry of the read names the filter.
  const reading = (await stage.gateway.call("GET", "/v1/ledger?action=ledger.read&order=desc&limit=200"))
    .body;
  expect(JSON.stringify(reading.data)).toContain('"outside_tasks"');
});
