/**
 * Whatever happens to the store between stops and resumes, the last acknowledged one counts, and all are recorded in
 * order.
 */
import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { ledger, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

let gateway: TestGateway;
let clock: FakeClock;
let file: Database;

beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }" });
  file = ownConnection(gateway.dataDir);
});
afterAll(async () => {
  await gateway.stop();
});

const FULL =
  "CREATE TRIGGER IF NOT EXISTS full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END";

type Step = "full" | "free" | "stop" | "resume" | "dispatch" | "change" | "look" | "second";
const STEPS: readonly Step[] = ["full", "free", "stop", "resume", "dispatch", "change", "look", "second"];

/** Something that is stopped and resumed. */
interface Target {
  readonly path: string;
  /** An agent that this stops. */
  readonly agent: string;
  readonly token: string;
  /** A change that is unrelated to the stop. */
  readonly change: () => object;
  /** The database column with the last decision. */
  readonly row: string;
}

let made = 0;

async function anAgent(): Promise<Target> {
  const name = `agent-${++made}`;
  await gateway.agent(name);
  return {
    path: `/v1/agents/${name}`,
    agent: name,
    token: gateway.admin,
    change: () => ({ description: String(clock.now()) }),
    row: `SELECT status FROM agents WHERE name = '${name}'`,
  };
}

async function aWorkspace(): Promise<Target> {
  const name = `workspace-${++made}`;
  const token = await gateway.workspace(name);
  await gateway.call("PATCH", "/v1/workspace", {
    token,
    body: { limits: { requests_per_minute: 1_000_000 } },
  });
  const agent = { name: "helper", owner: "tests", memory_scope: "/" };
  await gateway.call("POST", "/v1/agents", { token, body: agent });
  return {
    path: "/v1/workspace",
    agent: "helper",
    token,
    change: () => ({ limits: { concurrent_tasks: 1 + (clock.now() % 100) } }),
    row: `SELECT status FROM workspaces WHERE name = '${name}'`,
  };
}

async function holds(target: Target, steps: readonly Step[]): Promise<void> {
  const { path, agent, token } = target;
  let isFull = false;
  let status = "active";
  const decided: string[] = [];
  const decide = async (verb: string, next: string, isTaken: boolean) => {
    const answer = await gateway.call("POST", `${path}/${verb}`, { token });
    expect([verb, answer.status]).toEqual([verb, isTaken ? 200 : 503]);
    if (!isTaken) return;
    expect(answer.body.status).toBe(next);
    status = next;
    decided.push(`oversight.${verb}`);
  };
  for (const step of steps) {
    switch (step) {
      case "full":
        file.exec(FULL);
        isFull = true;
        break;
      case "free":
        file.exec("DROP TRIGGER IF EXISTS full");
        isFull = false;
        break;
      case "stop":
        await decide("stop", "stopped", true);
        break;
      case "resume":
        await decide("resume", "active", !isFull);
        break;
      case "dispatch": {
        const answer = await gateway.call("POST", "/v1/tasks", { token, body: { agent, prompt: "hi" } });
        expect(answer.status).toBe(isFull ? 503 : status === "stopped" ? 409 : 202);
        break;
      }
      case "change": {
        const answer = await gateway.call("PATCH", path, { token, body: target.change() });
        expect(answer.status).toBe(isFull ? 503 : 200);
        if (!isFull) expect(answer.body.status).toBe(status);
        break;
      }
      case "look": {
        const answer = await gateway.call("GET", path, { token });
        expect([answer.status, answer.body.status]).toEqual(isFull ? [503, 503] : [200, status]);
        break;
      }
      case "second":
        clock.advance(1_000);
        break;
    }
  }
  file.exec("DROP TRIGGER IF EXISTS full");
  const recorded = async () =>
    (await ledger(gateway, token))
      .filter(({ action, outcome }) => /^oversight/.test(action) && outcome === "succeeded")
      .filter((entry) => path === "/v1/workspace" || entry.agent === agent)
      .map(({ action }) => action);
  await until(async () => {
    clock.advance(1_000);
    return (await recorded()).length >= decided.length;
  });
  expect(await recorded()).toEqual(decided);
  const row = file.query<{ status: string }, []>(target.row).get();
  expect(row?.status).toBe(status);
}

test.each([
  ["an agent", anAgent],
  ["a workspace", aWorkspace],
])(
  "after any order of stops, resumes and faults of %s, the last acknowledged decision counts, and all are recorded in order",
  async (_of, make) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 3, maxLength: 14 }), async (steps) =>
        holds(await make(), steps),
      ),
      { numRuns: 60, examples: [[["full", "stop", "free", "stop", "resume", "look"]]] },
    );
  },
);
