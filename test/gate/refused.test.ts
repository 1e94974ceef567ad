import { beforeEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { Signal } from "../../src/base/signal.ts";
import { createLimitNotices } from "../../src/gate/notices.ts";
import { createRefusedCallers } from "../../src/gate/refused.ts";
import { LocalRequestLimiter } from "../../src/gate/requests.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { FakeClock } from "../support/clock.ts";

const MINUTE = 60_000;
let drafts: EntryDraft[];
let clock: FakeClock;
const ledger: Ledger = {
  begin: async () => {},
  append: () => Promise.reject(new Error("not asked for")),
  record: async (_: number, draft: EntryDraft) => drafts.push(draft),
  grown: new Signal(),
  appended: new Signal(),
  requested: new Signal(),
  appending: new Signal(),
};
const workspace = (id: number, requestsPerMinute: number) => ({
  id,
  name: `w${id}`,
  limits: { requestsPerMinute, concurrentTasks: 1, enforcement: "soft" as const },
  status: "active" as const,
  creditsPerMonth: null,
  createdAt: 0,
});

beforeEach(() => {
  drafts = [];
  clock = new FakeClock(Date.UTC(2026, 0, 1));
});

describe("unauthenticated calls", () => {
  const call = (source: string) => ({ source, requestId: "req_1", channel: "rest" as const });

  test("from 5,000 sources in one minute leave about a thousand entries, and every call is counted", async () => {
    const refused = createRefusedCallers(ledger, clock);
    for (let index = 0; index < 5_000; index++)
      await refused.note(1, call(`10.0.0.${index}`), "unauthenticated");
    expect(drafts.length).toBeLessThanOrEqual(1_001);
    clock.advance(MINUTE);
    await refused.sweep(1);
    const counted = drafts.reduce((sum, { detail }) => sum + Number(detail?.count ?? 1), 0);
    expect(counted).toBe(5_000);
    expect(drafts.at(-1)?.detail?.source).toBe("others");
  });

  test("are swept once: a second sweep records nothing", async () => {
    const refused = createRefusedCallers(ledger, clock);
    for (let index = 0; index < 3; index++) await refused.note(1, call("a"), "invalid_token");
    await refused.sweep(1);
    expect(drafts).toHaveLength(1);
    clock.advance(MINUTE);
    await refused.sweep(1);
    await refused.sweep(1);
    expect(drafts.map(({ detail }) => detail?.count)).toEqual([undefined, 2]);
  });
});

test("two limits exceeded in one minute leave one entry for the workspace, and each is reported to the operator", async () => {
  const told: string[] = [];
  const notices = createLimitNotices(ledger, clock, silentLog);
  notices.counted.listen(({ workspace: { name }, limit }) => void told.push(`${name} ${limit}`));
  await notices.exceeded(workspace(1, 1), "requests");
  await notices.exceeded(workspace(1, 1), "tasks");
  await notices.exceeded(workspace(2, 1), "requests");
  expect(drafts).toHaveLength(2);
  expect(told).toEqual(["w1 requests", "w1 tasks", "w2 requests"]);
  // The next entry also names the limit that came second.
  clock.advance(MINUTE);
  await notices.exceeded(workspace(1, 1), "requests");
  await notices.exceeded(workspace(2, 1), "requests");
  expect(drafts.slice(2).map(({ detail }) => [detail?.limit, detail?.also])).toEqual([
    ["requests", "tasks"],
    ["requests", undefined],
  ]);
});

describe("the request limiter", () => {
  test("keeps one bucket per workspace, and forgets no debt when the limit is raised", () => {
    const limiter = new LocalRequestLimiter();
    expect(limiter.take(workspace(1, 2), 0)).toMatchObject({ remaining: 1, exceeded: false });
    limiter.take(workspace(1, 2), 0);
    expect(limiter.take(workspace(1, 2), 0)).toMatchObject({
      remaining: 0,
      exceeded: true,
      retrySeconds: 30,
    });
    expect(limiter.take(workspace(2, 2), 0)).toMatchObject({ remaining: 1, exceeded: false });
    expect(limiter.take(workspace(1, 600), 0)).toMatchObject({ exceeded: true, retrySeconds: 1 });
    expect(limiter.take(workspace(1, 600), 1_000)).toMatchObject({ remaining: 9, exceeded: false });
  });

  test("a clock that is set back grants nothing", () => {
    const limiter = new LocalRequestLimiter();
    limiter.take(workspace(1, 1), 60_000);
    expect(limiter.take(workspace(1, 1), 0).exceeded).toBe(true);
  });
});
