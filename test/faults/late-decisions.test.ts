/** Whatever happens to the store between stops and resumes: the last one that was answered counts, and all are recorded in order. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { databasePath } from "../../src/store/directory.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

let gateway: TestGateway;
let clock: FakeClock;
let file: Database;

beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }" });
  file = new Database(databasePath(gateway.dataDir));
});
afterAll(async () => {
  file.close();
  await gateway.stop();
});

const FULL =
  "CREATE TRIGGER IF NOT EXISTS full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END";

type Step = "full" | "free" | "stop" | "resume" | "dispatch" | "change" | "look" | "second";
const STEPS: readonly Step[] = ["full", "free", "stop", "resume", "dispatch", "change", "look", "second"];

let agents = 0;

async function holds(steps: readonly Step[]): Promise<void> {
  const name = `agent-${++agents}`;
  const path = `/v1/agents/${name}`;
  await gateway.agent(name);
  let isFull = false;
  let status = "active";
  const decided: string[] = [];
  const decide = async (verb: string, next: string, isTaken: boolean) => {
    const answer = await gateway.call("POST", `${path}/${verb}`);
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
        const answer = await gateway.call("POST", "/v1/tasks", { body: { agent: name, prompt: "hi" } });
        expect(answer.status).toBe(isFull ? 503 : status === "stopped" ? 409 : 202);
        break;
      }
      case "change": {
        const answer = await gateway.call("PATCH", path, { body: { description: String(clock.now()) } });
        expect(answer.status).toBe(isFull ? 503 : 200);
        if (!isFull) expect(answer.body.status).toBe(status);
        break;
      }
      case "look": {
        const answer = await gateway.call("GET", path);
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
    (await ledger(gateway))
      .filter(
        ({ agent, action, outcome }) =>
          agent === name && /^oversight/.test(action) && outcome === "succeeded",
      )
      .map(({ action }) => action);
  await until(async () => {
    clock.advance(1_000);
    return (await recorded()).length >= decided.length;
  });
  expect(await recorded()).toEqual(decided);
  const row = file.query<{ status: string }, [string]>("SELECT status FROM agents WHERE name = ?").get(name);
  expect(row?.status).toBe(status);
}

test("any order of stops, resumes and faults", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 3, maxLength: 14 }), holds),
    { numRuns: 60, examples: [[["full", "stop", "free", "stop", "resume", "look"]]] },
  );
});
