/** Which calls are admitted beyond the cap, and what admission protects them from. */
import { afterEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../../src/base/log.ts";
import { endsWork } from "../../../src/http/connections/admission.ts";
import { ConnectionGuard } from "../../../src/http/connections/guard.ts";
import { OpenCalls } from "../../../src/http/connections/open-calls.ts";
import { FakeClock } from "../../support/clock.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe("a call ends work", () => {
  test.each([
    "/v1/agents/a/stop",
    "/v1/workspace/stop",
    "/v1/tasks/task_1/cancel",
    "/v1/agents/a/stop?reason=now",
    "/v1/tasks/task_1/cancel?",
  ])("%s", (path) => {
    expect(endsWork(`http://127.0.0.1:7777${path}`)).toBe(true);
  });
});

describe("a call does not end work", () => {
  test.each([
    "/v1/agents?after=/stop",
    "/v1/agents/stopped",
    "/v1/tasks?x=1/cancel?",
    "/v1/agents/a/stop/now",
  ])("%s", (path) => {
    expect(endsWork(`http://127.0.0.1:7777${path}`)).toBe(false);
  });
});

/** A server that holds all calls until `letGo`, with a guard that allows one connection. */
function startFull() {
  const letGo = Promise.withResolvers<void>();
  const admitted: boolean[] = [];
  let guard: ConnectionGuard | null = null;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      admitted.push(guard?.admit(request, endsWork(request.url)) ?? false);
      await letGo.promise;
      return new Response("done");
    },
  });
  const clock = new FakeClock();
  guard = new ConnectionGuard({
    server,
    plan: { openFiles: 1_000_000, connections: 1, calls: 1, streams: 1, streamsPerWorkspace: 1, reserve: 0 },
    calls: new OpenCalls(1),
    clock,
    log: silentLog,
    closed: () => {},
  });
  closing.push(
    () => server.stop(true),
    () => guard?.stop(),
    letGo.resolve,
  );
  return { url: server.url, admitted, look: () => clock.advance(250), letGo: letGo.resolve };
}

async function count(values: readonly unknown[], wanted: number): Promise<void> {
  while (values.length < wanted) await Bun.sleep(1);
}

test("the connection of a stop admitted beyond the cap is not closed while the stop is answered", async () => {
  const full = startFull();
  const call = fetch(new URL("/v1/agents", full.url));
  await count(full.admitted, 1);
  const stop = fetch(new URL("/v1/agents/a/stop?reason=now", full.url), { method: "POST" });
  await count(full.admitted, 2);
  const other = fetch(new URL("/v1/agents", full.url)).then(
    () => "answered",
    () => "closed",
  );
  await count(full.admitted, 3);
  expect(full.admitted).toEqual([true, true, false]);
  for (let looks = 0; looks < 3; looks++) full.look();
  // Only the connection of the call that was not admitted is closed.
  expect(await other).toBe("closed");
  full.letGo();
  expect(await (await stop).text()).toBe("done");
  expect(await (await call).text()).toBe("done");
});
