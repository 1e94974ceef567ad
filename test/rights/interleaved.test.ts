/**
 * Calls in flight while tokens are revoked and rotated, agents archived and sessions ended, in any order and within
 * one group commit. The ledger orders all of them, and after the entry that ends a token it has nothing more from
 * that token.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { signIn } from "../access/session-support.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";
import { sendHead } from "../support/late-body.ts";
import { ENGINE } from "../support/postgres/engine.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  await gateway.agent("steady");
});
afterAll(() => gateway.stop());

interface Entry {
  readonly seq: number;
  readonly ts: string;
  readonly phase: string;
  readonly action: string;
  readonly outcome: string;
  readonly actor: string;
  readonly oversight: { readonly decided_at?: string } | null;
}

const CALLS: readonly (readonly [method: string, path: string, body?: object])[] = [
  ["POST", "/v1/vault/documents", { title: "T", text: "A text.", scope: "support" }],
  ["POST", "/v1/vault/search", { query: "refund" }],
  ["POST", "/v1/tools/time.now/call", {}],
  ["POST", "/v1/tokens", { name: "more", scopes: ["tasks:read"] }],
  ["PATCH", "/v1/workspace", { limits: { enforcement: "soft" } }],
  ["POST", "/v1/agents/steady/stop", {}],
  ["POST", "/v1/agents/steady/resume", {}],
  ["GET", "/v1/agents"],
  ["GET", "/v1/ledger?limit=1"],
];

type Ending = "revoke" | "rotate" | "archive" | "session";

const step = fc.record({
  call: fc.nat(CALLS.length - 1),
  /** The body follows the head after this many turns of the event loop; null sends both together. */
  late: fc.option(fc.nat(6)),
  turns: fc.nat(2),
});
const scenario = fc.record({
  ending: fc.constantFrom<Ending>("revoke", "rotate", "archive", "session"),
  calls: fc.array(step, { minLength: 4, maxLength: 24 }),
  /** The token ends before this call. */
  at: fc.nat(24),
});

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

let names = 0;

async function play(
  ending: Ending,
  calls: readonly { call: number; late: number | null; turns: number }[],
  at: number,
): Promise<void> {
  names += 1;
  const agent = `leaver${names}`;
  await gateway.agent(agent);
  const request = { name: "t", scopes: ["admin"], ...(ending === "archive" ? { agent } : {}) };
  const { id, secret } = (await gateway.call("POST", "/v1/tokens", { body: request })).body;
  const browser = ending === "session" ? await signIn(gateway, secret) : null;
  const headers: Record<string, string> = browser
    ? { cookie: browser.cookie, "sec-fetch-site": "same-origin" }
    : {};
  const token = browser ? null : secret;
  const end = (): Promise<Answered> => {
    if (ending === "revoke") return gateway.call("DELETE", `/v1/tokens/${id}`);
    if (ending === "rotate") return gateway.call("POST", `/v1/tokens/${id}/rotate`);
    if (ending === "archive") return gateway.call("DELETE", `/v1/agents/${agent}`);
    return gateway.call("DELETE", `/v1/sessions/${browser?.id}`);
  };
  const out: Promise<{ status: number }>[] = [];
  let ended: Promise<Answered> | undefined;
  for (const [index, { call, late, turns: pause }] of calls.entries()) {
    if (index === Math.min(at, calls.length - 1)) ended = end();
    const [method, path, body] = CALLS[call] ?? ["GET", "/v1/agents"];
    if (late !== null && body) {
      const held = sendHead(gateway, { method, path, token, headers, body });
      out.push(turns(late).then(() => held.finish()));
    } else {
      out.push(gateway.call(method, path, { token, headers, ...(body ? { body } : {}) }));
    }
    await turns(pause);
  }
  expect((await ended)?.status).toBeOneOf([200, 204]);
  const endedAt = new Date().toISOString();
  await Promise.all(out);
  await verify(ending, id, endedAt);
}

/** @param endedAt when the end of the rights had been answered */
async function verify(ending: Ending, id: string, endedAt: string): Promise<void> {
  const action = {
    revoke: "token.revoke",
    rotate: "token.rotate",
    archive: "agent.archive",
    session: "session.revoke",
  }[ending];
  const last = (await gateway.call("GET", `/v1/ledger?action=${action}&order=desc&limit=1`)).body
    .data[0] as Entry;
  const { data } = (await gateway.call("GET", `/v1/ledger?actor=token:${id}&order=desc&limit=200`)).body;
  const latest = process.env[ENGINE] === "postgres" ? endedAt : last.ts;
  const behind = (data as Entry[])
    .filter(({ seq, outcome, phase }) => seq > last.seq && outcome !== "denied" && phase !== "outcome")
    // Decisions made earlier stay in effect, and may be recorded after that entry. In PostgreSQL, other connections see
    // the end once it is committed, which is later than the time of its entry.
    .filter(({ action, oversight }) => {
      const isDecision = action === "oversight.stop" || action === "task.cancel";
      return !(isDecision && oversight?.decided_at !== undefined && oversight.decided_at <= latest);
    });
  expect(behind.map(({ action, outcome, seq }) => [action, outcome, seq - last.seq])).toEqual([]);
}

test("whatever the order, no entry of a token succeeds after the one that ended it", async () => {
  await fc.assert(
    fc.asyncProperty(scenario, ({ ending, calls, at }) => play(ending, calls, at)),
    { numRuns: 60 },
  );
}, 120_000);

test("of many calls that share a sync with the revocation, those after it in the group are refused", async () => {
  for (let round = 0; round < 20; round++) {
    const calls = Array.from({ length: 40 }, (_, index) => ({
      call: index % CALLS.length,
      late: null,
      turns: 0,
    }));
    await play("revoke", calls, 20);
  }
}, 120_000);
