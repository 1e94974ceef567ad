/** Outcomes that wait until the store can be written again: the total size of their texts is bounded. */
import { expect, test } from "bun:test";
import { silentLog } from "../../../src/base/log.ts";
import { LateOutcomes } from "../../../src/gate/direct/late-outcomes.ts";
import { StoreUnavailable } from "../../../src/store/db.ts";
import { FakeClock } from "../../support/clock.ts";
import { until } from "../../support/until.ts";

const MI = 1_048_576;

/** Keeps texts of a workspace while there is room. @returns how many were kept */
function fill(
  late: LateOutcomes,
  workspaceId: number,
  characters: number,
  write: () => Promise<void>,
): number {
  let kept = 0;
  for (; kept < 1_000 && late.fits(workspaceId, characters); kept++)
    late.keep({ workspaceId, intent: kept, write, characters });
  return kept;
}

test("a text of more than 1 Mi characters, and texts beyond the share of a workspace or of all, are not kept", async () => {
  const clock = new FakeClock();
  const late = new LateOutcomes(clock, silentLog);
  let isFull = true;
  const write = async () => {
    if (isFull) throw new StoreUnavailable("full");
  };
  expect(late.fits(1, MI)).toBe(true);
  expect(late.fits(1, MI + 1)).toBe(false);
  expect(fill(late, 1, MI, write)).toBe(16);
  for (const workspace of [2, 3, 4]) expect(fill(late, workspace, MI / 2, write)).toBe(32);
  expect(fill(late, 5, 1, write)).toBe(0);
  isFull = false;
  // Written texts make room again.
  await until(() => {
    clock.advance(1_000);
    return late.fits(1, MI);
  });
  await late.stop();
});

test("one workspace's waiting outcomes take no place from another's", async () => {
  const late = new LateOutcomes(new FakeClock(), silentLog);
  let isFull = true;
  const written: number[] = [];
  const outcome = (workspaceId: number) => ({
    ...{ workspaceId, intent: 1 },
    async write() {
      if (isFull) throw new StoreUnavailable("full");
      written.push(workspaceId);
    },
  });
  for (let count = 0; count < 20_000; count++) late.keep(outcome(1));
  late.keep(outcome(2));
  isFull = false;
  await late.stop();
  expect([written.filter((id) => id === 1).length, written.at(-1)]).toEqual([16_384, 2]);
});
