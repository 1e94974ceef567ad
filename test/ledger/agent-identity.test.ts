/** Which agent an entry is about, if several agents have had the same name. */
import { expect, test } from "bun:test";
import { createIds, idTime, idTimeOf, systemRandom } from "../../src/base/ids.ts";
import { isAboutAgentSince } from "../../src/ledger/agent-identity.ts";
import type { ParsedEntry } from "../../src/ledger/reading/parsed-entry.ts";

const MADE = Date.UTC(2026, 4, 1, 12);
const SINCE = new Date(MADE).toISOString();
const idAt = (prefix: "task" | "req", ms: number) => createIds({ now: () => ms }, systemRandom)(prefix);

test("an id contains the millisecond of its creation, as text that sorts", () => {
  for (const ms of [0, 1, MADE - 1, MADE, 2 ** 48 - 1]) {
    expect(idTime(idAt("task", ms))).toBe(idTimeOf(ms));
    expect(idTimeOf(ms) < idTimeOf(ms + 1) || ms === 2 ** 48 - 1).toBe(true);
  }
});

const CASES: readonly (readonly [string, boolean, ParsedEntry])[] = [
  ["that was written before it existed", false, { ts: new Date(MADE - 1).toISOString() }],
  ["without a time", false, {}],
  ["of an earlier agent's task that ends later", false, { ts: SINCE, task: idAt("task", MADE - 1) }],
  [
    "of an earlier agent's task that is read now",
    false,
    { ts: SINCE, task: idAt("task", MADE - 1), request_id: idAt("req", MADE) },
  ],
  ["of its own task", true, { ts: SINCE, task: idAt("task", MADE) }],
  [
    "of its own task, requested before it existed",
    true,
    { ts: SINCE, task: idAt("task", MADE), request_id: idAt("req", MADE - 1) },
  ],
  ["of a call that began before it existed", false, { ts: SINCE, request_id: idAt("req", MADE - 1) }],
  ["of a call that began while it existed", true, { ts: SINCE, request_id: idAt("req", MADE) }],
  [
    "of the call that created it",
    true,
    { ts: SINCE, action: "agent.create", request_id: idAt("req", MADE - 1) },
  ],
  ["of the system", true, { ts: SINCE, action: "budget.warn" }],
];

test.each(CASES)("an entry %s: %p", (_, isAbout, entry) => {
  expect(isAboutAgentSince(entry, SINCE)).toBe(isAbout);
});
