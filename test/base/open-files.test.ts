/**
 * What happens when a process has no file descriptor left. Each test uses a separate process, because the limit would
 * affect this one too.
 */
import { expect, test } from "bun:test";
import { withFewFiles } from "../support/few-files.ts";

test("reserved descriptors cannot be taken, but are lent to whatever needs them", async () => {
  const { reported, code } = await withFewFiles(`
    reserve.resize(8);
    takeAll();
    report([reserve.held, reserve.isShort, reserve.hasRoom(1)]);
    try { readdirSync("/"); } catch (error) { report(error.code); }
    report(reserve.lend(1, () => readdirSync("/").length > 0));
    report([reserve.held, reserve.isShort]);
    reserve.lend(3, () => takeAll());
    report([reserve.held, reserve.isShort]);
    giveBack(3);
    reserve.refill();
    report([reserve.held, reserve.isShort]);
    reserve.resize(0);
    report([reserve.held, reserve.hasRoom(8), reserve.hasRoom(9)]);
  `);
  expect(reported).toEqual([
    [8, false, false],
    "EMFILE",
    true,
    [8, false],
    [5, true],
    [8, false],
    [0, true, false],
  ]);
  expect(code).toBe(0);
});

test("a thread is refused when few descriptors are left, and does not end the process", async () => {
  const { reported, code } = await withFewFiles(`
    const program = new URL("data:text/javascript,postMessage(1)");
    reserve.resize(8);
    takeAll();
    try { startThread(program); } catch (error) { report(error.name); }
    giveBack(15);
    try { startThread(program); } catch (error) { report(error.name); }
    giveBack(1);
    const worker = startThread(program);
    // The thread has its own descriptors now, so take all others.
    takeAll();
    worker.onmessage = () => { report("it runs"); process.exit(0); };
    worker.onerror = ({ message }) => { report(message); process.exit(0); };
  `);
  expect(reported).toEqual(["OutOfOpenFiles", "OutOfOpenFiles", "it runs"]);
  expect(code).toBe(0);
});

test("a caller waiting for a descriptor continues when there is one", async () => {
  const { reported, code } = await withFewFiles(`
    reserve.resize(8);
    takeAll();
    const waiting = reserve.untilRoom().then(() => report("room"));
    report(await Promise.race([waiting, Bun.sleep(1).then(() => "none yet")]));
    giveBack(1);
    await waiting;
    takeAll();
    await reserve.untilRoom(AbortSignal.abort());
    report("aborted");
  `);
  expect(reported).toEqual(["none yet", "room", "aborted"]);
  expect(code).toBe(0);
});
