import { expect, test } from "bun:test";
import { PublicFiles } from "../../src/http/answer/public-files.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { type SystemRouteParts, systemRoutes } from "../../src/http/routes/system.ts";
import { FakeClock } from "../support/clock.ts";

test("readiness requests at the same time, or soon after, share one probe", async () => {
  let probes = 0;
  let isDraining = false;
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  const clock = new FakeClock();
  const ids = () => "req_1";
  const parts: SystemRouteParts = {
    ids,
    clock,
    gate: { call: () => Promise.reject(new Error("not asked for")) },
    metrics: createMetrics(),
    operatorSecret: "",
    measure() {},
    readiness: {
      isDraining: () => isDraining,
      failing() {
        probes++;
        return promise;
      },
    },
  };
  const routes = systemRoutes(parts, new PublicFiles({ clock, ids }));
  const ask = () => routes.handle(new Request("http://gate/readyz"));
  const asking = Array.from({ length: 50 }, ask);
  resolve(["store"]);
  const answers = await Promise.all([...asking, ask()]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  expect(probes).toBe(1);
  clock.advance(999);
  await ask();
  expect(probes).toBe(1);
  clock.advance(1);
  await ask();
  expect(probes).toBe(2);
  // A server that no longer accepts work must not be reported as ready, even for a second.
  isDraining = true;
  expect(await (await ask()).json()).toMatchObject({ failing: ["draining"] });
  expect(probes).toBe(2);
});
