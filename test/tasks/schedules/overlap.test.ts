/** Each scheduled time gets its task, whatever became of the previous one, as with cron and croner. */
import { expect, test } from "bun:test";
import { until } from "../../notify/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { startStage } from "../support.ts";

/** How long a model may be silent. */
const PATIENCE_MS = 600_000;

test("a time that arrives while the previous task still runs gets its own task", async () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const { gateway, upstream, stop } = await startStage({
    clock,
    tiers: { 1: ["a"] },
    timeoutMs: PATIENCE_MS,
  });
  try {
    upstream.script("a", { hang: true });
    await gateway.agent("helper");
    const fields = { name: "hourly", agent: "helper", prompt: "hello", cron: "0 * * * *" };
    const made = await gateway.call("POST", "/v1/schedules", { body: fields });
    const id = made.body.id;
    const tasks: string[] = [];
    for (const time of ["2026-01-02T04:00:00.000Z", "2026-01-02T05:00:00.000Z", "2026-01-02T06:00:00.000Z"]) {
      clock.setWall(Date.parse(time));
      clock.advance(30_000);
      await until(async () => {
        clock.advance(1);
        const { last_run } = (await gateway.call("GET", `/v1/schedules/${id}`)).body;
        if (last_run?.scheduled_at !== time) return false;
        expect(last_run).toMatchObject({ code: null });
        tasks.push(last_run.task);
        return true;
      });
      await until(() => upstream.requests.length === tasks.length);
    }
    expect(new Set(tasks).size).toBe(3);
    for (const task of tasks) {
      expect((await gateway.call("GET", `/v1/tasks/${task}`)).body.status).toBe("running");
    }
  } finally {
    await stop();
  }
});
