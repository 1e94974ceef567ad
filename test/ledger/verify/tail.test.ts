/** How much a server may leave unsigned, and which entries say how often it signs. */
import { describe, expect, test } from "bun:test";
import type { EntryFields } from "../../../src/ledger/verify/form.ts";
import { DEFAULT_RULE, isTailTooLong, laxestOf, ruleOf } from "../../../src/ledger/verify/tail.ts";

const CHANGE: EntryFields = {
  seq: 1,
  prev: "0".repeat(64),
  ts: "2026-01-01T00:00:00.000Z",
  action: "config.change",
  actor: "system",
  channel: "system",
  outcome: "succeeded",
  detail: { checkpoint_every: 100, checkpoint_seconds: 5 },
};

describe("the rule that an entry says", () => {
  test.each<[string, Partial<EntryFields>]>([
    ["of somebody over HTTP", { channel: "rest" }],
    ["of another action", { action: "config.read" }],
    ["that was refused", { outcome: "denied" }],
    ["without a detail", { detail: {} }],
    ["with one number alone", { detail: { checkpoint_every: 100 } }],
    ["that is a text", { detail: { checkpoint_every: "100", checkpoint_seconds: 5 } }],
    ["that is nothing", { detail: { checkpoint_every: 0, checkpoint_seconds: 5 } }],
    ["of more entries than can be set", { detail: { checkpoint_every: 1_000_001, checkpoint_seconds: 5 } }],
    ["of more seconds than can be set", { detail: { checkpoint_every: 100, checkpoint_seconds: 86_401 } }],
  ])("is none: %s", (_, fields) => {
    expect(ruleOf({ ...CHANGE, ...fields })).toBeNull();
  });

  test("is taken as it stands, and the laxest of several", () => {
    expect(ruleOf(CHANGE)).toEqual({ every: 100, seconds: 5 });
    expect(laxestOf([])).toEqual(DEFAULT_RULE);
    expect(laxestOf([{ every: 100, seconds: 3600 }])).toEqual({ every: 256, seconds: 3600 });
  });
});

test.each<[string, number, number | null, boolean]>([
  ["nothing", 0, null, false],
  ["one group of entries, less one", 20_255, 0, false],
  ["one group of entries", 20_256, 0, true],
  ["one group of entries whose times are not known", 20_256, null, true],
  ["two minutes", 2, 120_000, false],
  ["more than two minutes", 2, 120_001, true],
  ["times that are not known", 2, null, false],
])("a tail of %s", (_, entries, ms, isTooLong) => {
  const times = ms === null ? null : { first: 7, last: 7 + ms };
  expect(isTailTooLong(DEFAULT_RULE, entries, times)).toBe(isTooLong);
});
