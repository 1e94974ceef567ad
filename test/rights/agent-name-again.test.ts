/**
 * A name is freed and taken again. The agent that now has it is a different one, and its token sees nothing of the
 * earlier agent.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { Unpacked } from "../ledger/verify/bundle/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

interface Entry {
  readonly seq: number;
  readonly action: string;
  readonly agent?: string;
  readonly task?: string;
}

let gateway: TestGateway;
/** Acts as the agent that now has the name. */
let token: string;
let earlierToken: string;
let earlierTask: string;
let ownTask: string;
/** Entries about the earlier agent that were written after the new one was created. */
let late: readonly number[];

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("own");
  earlierTask = await finishedTask(gateway, "own", "a prompt of the earlier agent");
  ({ id: earlierToken } = await issue(["admin"]));
  await gateway.call("DELETE", "/v1/agents/own");
  await gateway.agent("own");
  const first = await newest();
  await gateway.call("GET", `/v1/tasks/${earlierTask}`);
  await gateway.call("GET", `/v1/tasks/${earlierTask}`);
  late = (await entries("?agent=own", gateway.admin)).map(({ seq }) => seq).filter((seq) => seq > first);
  ({ secret: token } = await issue(["admin"]));
  ownTask = await finishedTask(gateway, "own");
  await gateway.call("GET", `/v1/tasks/${ownTask}`);
});
afterAll(() => gateway.stop());

async function issue(scopes: readonly string[]): Promise<{ readonly id: string; readonly secret: string }> {
  const { body } = await gateway.call("POST", "/v1/tokens", { body: { name: "t", agent: "own", scopes } });
  return body;
}

async function entries(query: string, by = token): Promise<Entry[]> {
  const { body } = await gateway.call("GET", `/v1/ledger${query}&limit=200`, { token: by });
  return body.data;
}

async function newest(): Promise<number> {
  const [entry] = await entries("?order=desc", gateway.admin);
  return entry?.seq ?? 0;
}

/** The entries about the agent, by each way of reading the ledger. */
const WAYS: Readonly<Record<string, () => Promise<readonly number[]>>> = {
  "a list": async () => (await entries("?order=asc")).map(({ seq }) => seq),
  NDJSON: async () => seqsOf(await text("?format=ndjson")),
  "an Article 14 bundle": async () => {
    const response = await fetch(`${gateway.url}/v1/ledger?format=article14`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return seqsOf((await Unpacked.of(await response.blob())).text("entries.ndjson"));
  },
};

async function text(query: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${gateway.url}/v1/ledger${query}`, { headers })).text();
}

const seqsOf = (lines: string): number[] =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).seq);

describe("the token of an agent that took a freed name sees", () => {
  test("no late entry of the earlier agent's tasks, one by one or with a proof", async () => {
    expect(late).toHaveLength(2);
    for (const seq of late) {
      for (const path of [`/v1/ledger/${seq}`, `/v1/ledger/${seq}/proof`]) {
        expect([path, (await gateway.call("GET", path, { token })).status]).toEqual([path, 404]);
      }
    }
  });

  test.each(Object.entries(WAYS))(
    "none of them in %s, which contains its own task's entries",
    async (_, read) => {
      const seen = await read();
      expect(seen.filter((seq) => late.includes(seq))).toEqual([]);
      const own = (await entries(`?task=${ownTask}`, gateway.admin)).map(({ seq }) => seq);
      expect(own.length).toBeGreaterThan(3);
      expect(own.filter((seq) => !seen.includes(seq))).toEqual([]);
    },
  );

  test("and may neither rotate nor revoke a token of the earlier agent", async () => {
    for (const [method, path] of [
      ["POST", `/v1/tokens/${earlierToken}/rotate`],
      ["DELETE", `/v1/tokens/${earlierToken}`],
    ] as const) {
      const { status, body } = await gateway.call(method, path, { token });
      expect([status, body.code]).toEqual([403, "agent_forbidden"]);
    }
  });
});
