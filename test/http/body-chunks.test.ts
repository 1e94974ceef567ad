import { expect, test } from "bun:test";
import { join } from "node:path";
import { readBytes } from "../../src/http/body/bytes.ts";
import { BodyShares } from "../../src/http/body/shares.ts";
import { FakeClock } from "../support/clock.ts";

const MIB = 1024 * 1024;

test("a body in chunks of one byte leaves the event loop to others after 32 chunks", async () => {
  const shares = new BodyShares({ clock: new FakeClock() });
  const came = { count: 0, ended: false };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = shares.open(1);
      const cameAt = body.came.bind(body);
      body.came = (bytes) => {
        came.count++;
        cameAt(bytes);
      };
      await readBytes(request, MIB, body).catch(() => {});
      came.ended = true;
      return new Response();
    },
  });
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "../support/trickling.ts"), "127.0.0.1", String(server.port)],
    { stdin: "ignore", stdout: "inherit", stderr: "inherit" },
  );
  // Between two reads of the count, two turns may begin.
  let most = 0;
  for (let before = 0; !came.ended; before = came.count) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    most = Math.max(most, came.count - before);
  }
  expect(most).toBeLessThanOrEqual(2 * 32);
  child.kill("SIGKILL");
  await child.exited;
  await server.stop(true);
});
