/** Long walks share the event loop's turns, however many run at once. */
import { expect, test } from "bun:test";
import { takeWholeTurn } from "../../src/base/inflow.ts";
import { mostPerTurn } from "../support/loop-turns.ts";

async function walk(workspaceId: number, slices: number, slice: () => void): Promise<void> {
  for (let at = 0; at < slices; at++) {
    slice();
    await takeWholeTurn(workspaceId);
  }
}

test("one slice runs per turn", async () => {
  let slices = 0;
  const walks = Array.from({ length: 30 }, () => walk(1, 10, () => void slices++));
  // Each walk begins with a slice before its first turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await mostPerTurn(Promise.all(walks), () => slices)).toBeLessThanOrEqual(3);
  expect(slices).toBe(300);
});

test("a workspace does not wait for all walks of another", async () => {
  const ended: string[] = [];
  const own = Array.from({ length: 30 }, () => walk(1, 10, () => {}).then(() => ended.push("own")));
  const other = walk(2, 10, () => {}).then(() => ended.push("other"));
  await Promise.all([...own, other]);
  expect(ended[0]).toBe("other");
});
