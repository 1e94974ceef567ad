import { describe, expect, test } from "bun:test";
import { groupRuns } from "../../../src/connectors/mcp-upstream/stdio/process-group.ts";
import { faultOf, type Opened, openFake, pidOf, quickClock, runs } from "./support.ts";

/** The number after this word on the upstream's standard error: `pid` for its own, `child` for its child's. */
async function said(up: Opened, word: string): Promise<number> {
  const { fields } = await up.logs(({ fields }) => String(fields.line).startsWith(`${word} `));
  return Number(String(fields.line).slice(word.length));
}

describe("closing leaves no process behind", () => {
  test("of a program that ends with its input", async () => {
    await using up = openFake("plain");
    const pid = await pidOf(up);
    await up.source.close();
    expect([runs(pid), groupRuns(pid)]).toEqual([false, false]);
  });

  test.each(["stubborn", "deaf"])("of one that ends only on a signal (%s)", async (behaviour) => {
    await using up = openFake(behaviour, {}, { clock: quickClock });
    const listed = up.list().catch(() => []);
    const pid = await said(up, "pid");
    await up.source.close();
    await listed;
    expect([runs(pid), groupRuns(pid)]).toEqual([false, false]);
  });

  test("or of its own children", async () => {
    await using up = openFake("family", {}, { clock: quickClock });
    const pid = await pidOf(up);
    const child = await said(up, "child");
    expect(runs(child)).toBe(true);
    await up.source.close();
    expect([runs(pid), runs(child), groupRuns(pid)]).toEqual([false, false, false]);
  });

  test("even if it had already ended by itself", async () => {
    await using up = openFake("family", {}, { clock: quickClock });
    const pid = await pidOf(up);
    const child = await said(up, "child");
    expect(await faultOf(up.call("exit"))).toStartWith("unreachable: ");
    await up.source.close();
    expect([runs(child), groupRuns(pid)]).toEqual([false, false]);
  });

  test("even while it starts", async () => {
    await using up = openFake("silent", {}, { clock: quickClock });
    const listed = faultOf(up.list());
    const pid = await said(up, "pid");
    await up.source.close();
    expect(await listed).toBe("unreachable: The connection to the connector up was closed.");
    expect(groupRuns(pid)).toBe(false);
  });
});

test("closing fails the calls in flight, and later ones", async () => {
  await using up = openFake("plain");
  const out = Promise.withResolvers<void>();
  const call = faultOf(up.call("progress", { steps: 1, hang: true }, { progress: () => out.resolve() }));
  await out.promise;
  await up.source.close();
  expect(await call).toBe(
    "unreachable: The connection to the connector up was closed. It is unknown whether the call was carried out.",
  );
  expect(await faultOf(up.list())).toBe("unreachable: The connector up was closed.");
  await up.source.close();
});

test("one process serves all calls, and the next starts after it has ended", async () => {
  await using up = openFake("plain");
  const pids = await Promise.all(Array.from({ length: 20 }, () => pidOf(up)));
  expect(new Set(pids).size).toBe(1);
  await faultOf(up.call("exit"));
  const next = await Promise.all(Array.from({ length: 20 }, () => pidOf(up)));
  expect(new Set(next).size).toBe(1);
  expect(next[0]).not.toBe(pids[0]);
  expect(groupRuns(pids[0] ?? 0)).toBe(false);
});

test("a gateway that is killed leaves no child: its input ends", async () => {
  const gateway = Bun.spawn([process.execPath, `${import.meta.dir}/killed-gateway.ts`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const reader = gateway.stdout.getReader();
  const { value } = await reader.read();
  const pid = Number(new TextDecoder().decode(value));
  expect(runs(pid)).toBe(true);
  gateway.kill("SIGKILL");
  await gateway.exited;
  // A process is not notified when a process that is not its child ends.
  const deadline = Date.now() + 10_000;
  while (runs(pid) && Date.now() < deadline) await Bun.sleep(10);
  expect(runs(pid)).toBe(false);
});
