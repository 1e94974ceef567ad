/** A resume waits until everything that the stop ended is written; otherwise a crash would let it run again. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { dispatch, ended, ledger, unsettled, until, yamlOf } from "../tasks/support.ts";

setDefaultTimeout(60_000);

let upstream: FakeModel;
let gateway: TestGateway;
let dataDir: string;
let yaml: string;
let file: Database;

beforeEach(async () => {
  upstream = startFakeModel({ fallback: { hang: true } });
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-resumed-"));
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    timeoutMs: 3_600_000,
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  // The clock is stopped, so nothing that was refused is retried automatically.
  gateway = await startGateway({ clock: new FakeClock(), yaml, dataDir });
  await gateway.agent("plain");
  file = ownConnection(dataDir);
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test.each(["/v1/agents/plain", "/v1/workspace"])(
  "a resume waits until everything that the stop ended is written: %s",
  async (path) => {
    const running = await dispatch(gateway, { agent: "plain" });
    await until(() => upstream.requests.length === 1);
    const queued = await dispatch(gateway, { agent: "plain" });
    file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    const stopped = await gateway.call("POST", `${path}/stop`);
    expect([stopped.status, stopped.body.status]).toEqual([200, "stopped"]);
    expect((await gateway.call("POST", `${path}/resume`)).status).toBe(503);
    // Now the decision itself can be written, but the end of the task cannot.
    file.run("DROP TRIGGER full");
    file.run(
      `CREATE TRIGGER full BEFORE INSERT ON ledger WHEN json_extract(CAST(NEW.bytes AS TEXT), '$.action') = 'task.dispatch'
     BEGIN SELECT RAISE(ABORT, 'full'); END`,
    );
    const refused = await gateway.call("POST", `${path}/resume`);
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    file.run("DROP TRIGGER full");
    const resumed = await gateway.call("POST", `${path}/resume`);
    expect([resumed.status, resumed.body.status]).toEqual([200, "active"]);

    const crashed = `${dataDir}-crashed`;
    cpSync(dataDir, crashed, { recursive: true });
    upstream.script("a", { chunks: ["it ran again"] });
    const second = await startGateway({ yaml, dataDir: crashed });
    try {
      for (const id of [running, queued]) {
        expect(await ended(second, id)).toMatchObject({
          status: "cancelled",
          error: { code: "agent_stopped" },
        });
      }
      expect(unsettled(await ledger(second))).toEqual([]);
    } finally {
      await second.stop();
      rmSync(crashed, { recursive: true, force: true });
    }
  },
);
