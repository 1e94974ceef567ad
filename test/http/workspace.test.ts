import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const change = (body: unknown) => gateway.call("PATCH", "/v1/workspace", { body });
const read = async () => (await gateway.call("GET", "/v1/workspace")).body;
const DEFAULT = {
  name: "default",
  status: "active",
  limits: { requests_per_minute: 600, concurrent_tasks: 60, enforcement: "soft" },
  budget: { credits_per_month: null },
  usage: { tasks_running: 0, tasks_queued: 0, credits_this_month: 0 },
};

describe("PATCH is refused for", () => {
  const cases: readonly [body: unknown, path: string][] = [
    [{ limits: null }, "/limits"],
    [{ limits: { requests_per_minute: 0 } }, "/limits/requests_per_minute"],
    [{ limits: { requests_per_minute: -1 } }, "/limits/requests_per_minute"],
    [{ limits: { requests_per_minute: 1.5 } }, "/limits/requests_per_minute"],
    [{ limits: { requests_per_minute: "600" } }, "/limits/requests_per_minute"],
    [{ limits: { requests_per_minute: null } }, "/limits/requests_per_minute"],
    [{ limits: { requests_per_minute: 1e300 } }, "/limits/requests_per_minute"],
    [{ limits: { concurrent_tasks: 0 } }, "/limits/concurrent_tasks"],
    [{ limits: { concurrent_tasks: 2.5 } }, "/limits/concurrent_tasks"],
    [{ limits: { enforcement: "hard" } }, "/limits/enforcement"],
    [{ limits: { enforcement: "Soft" } }, "/limits/enforcement"],
    [{ limits: { enforcement: null } }, "/limits/enforcement"],
    [{ budget: null }, "/budget"],
    [{ budget: { credits_per_month: -0.5 } }, "/budget/credits_per_month"],
    [{ budget: { credits_per_month: "5" } }, "/budget/credits_per_month"],
    [{ budget: { credits_per_month: 0.0000001 } }, "/budget/credits_per_month"],
    [{ budget: { credits_per_month: 1e300 } }, "/budget/credits_per_month"],
    [{ limits: { requests_per_minute: 5 }, budget: { credits_per_month: -1 } }, "/budget/credits_per_month"],
  ];
  test.each(cases)("%j, and no part of it is applied", async (body, path) => {
    const answer = await change(body);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, path]);
    expect(await read()).toEqual(DEFAULT);
  });
});

test("a workspace is read back completely, with the node's limits at first", async () => {
  expect(await read()).toEqual(DEFAULT);
});

describe("PATCH changes the part that it names,", () => {
  const cases: readonly [body: object, shown: object][] = [
    [{}, {}],
    [{ limits: {} }, {}],
    [{ budget: {} }, {}],
    [{ limits: { requests_per_minute: 1000 } }, { limits: { requests_per_minute: 1000 } }],
    [{ limits: { concurrent_tasks: 3 } }, { limits: { concurrent_tasks: 3 } }],
    [{ limits: { enforcement: "enforced" } }, { limits: { enforcement: "enforced" } }],
    [{ budget: { credits_per_month: 0.000001 } }, { budget: { credits_per_month: 0.000001 } }],
    [{ budget: { credits_per_month: 123456.654321 } }, { budget: { credits_per_month: 123456.654321 } }],
    [{ budget: { credits_per_month: 0 } }, { budget: { credits_per_month: 0 } }],
    [{ budget: { credits_per_month: null } }, { budget: { credits_per_month: null } }],
    [
      { limits: { requests_per_minute: 600, concurrent_tasks: 60, enforcement: "soft" } },
      { limits: DEFAULT.limits },
    ],
  ];
  test("and no other, step by step", async () => {
    let expected = { ...DEFAULT };
    for (const [body, shown] of cases) {
      const parts = shown as { limits?: object; budget?: object };
      expected = {
        ...expected,
        limits: { ...expected.limits, ...parts.limits },
        budget: { ...expected.budget, ...parts.budget },
      };
      const answer = await change(body);
      expect([answer.status, answer.body]).toEqual([200, expected]);
      expect(await read()).toEqual(expected);
    }
  });
});

test("a budget of zero refuses the next dispatch, and removing it lets it through again", async () => {
  await gateway.agent("agent");
  const dispatch = () => gateway.call("POST", "/v1/tasks", { body: { agent: "agent", prompt: "x" } });
  await change({ budget: { credits_per_month: 0 } });
  const refused = await dispatch();
  expect([refused.status, refused.body.code]).toEqual([402, "credits_exhausted"]);
  await change({ budget: { credits_per_month: null } });
  expect((await dispatch()).status).toBe(202);
});

test("limits survive a restart, and unset ones follow the node", async () => {
  await change({ limits: { requests_per_minute: 77 } });
  await gateway.gateway.stop();
  const again = await startGateway({ dataDir: gateway.dataDir, yaml: "limits: { concurrent_tasks: 5 }\n" });
  const { body } = await again.call("GET", "/v1/workspace");
  expect(body.limits).toMatchObject({ requests_per_minute: 77, enforcement: "soft" });
  await again.stop();
  rmSync(again.dataDir, { recursive: true });
  gateway = await startGateway();
});
