/**
 * Entries that name another entry must match it, even though the ledger's own key signed them: a server writes what
 * its stored notes say.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { createIds, systemRandom } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { EntryDraft } from "../../../src/ledger/entry.ts";
import { nodeHeadStore } from "../../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../../src/ledger/keys/file.ts";
import { openChains } from "../../../src/ledger/open-chains.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { startGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";
import { allFindings, verify } from "./scene.ts";

setDefaultTimeout(60_000);

type Made = Partial<EntryDraft> & Pick<EntryDraft, "action">;
/** An entry, built from the numbers of the entries before it. */
type Entry = (seqs: readonly number[]) => Made;

let directory: ReturnType<typeof tempDir>;
beforeEach(async () => {
  directory = tempDir();
  await (await startGateway({ dataDir: directory.path })).stop();
});
afterEach(() => directory.remove());

/**
 * Writes entries with the ledger's key, with `between` other entries after the first.
 * @returns the findings' codes, each with its entry's place, counted from 0
 */
async function foundIn(entries: readonly Entry[], between = 0): Promise<(string | number)[][]> {
  const db = openSqlite(join(directory.path, "gatehouse.db"));
  const workspace = await db.get<{ id: number }>("SELECT id FROM workspaces WHERE name = 'default'");
  const workspaceId = workspace?.id ?? 0;
  const { ledger } = await openChains({
    ...{
      db,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(directory.path),
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
    },
    workspaces: () => [{ id: workspaceId, name: "default" }],
    nameOf: () => "default",
  });
  const draft = { phase: "single", outcome: "succeeded", channel: "system", actor: "token:tok_a" } as const;
  const seqs: number[] = [];
  for (const entry of entries) {
    seqs.push(await ledger.record(workspaceId, { ...draft, agent: "helper", ...entry(seqs) }));
    if (seqs.length > 1) continue;
    const notes = Array.from(
      { length: between },
      () => ({ ...draft, phase: "intent", action: "test.note" }) as const,
    );
    await Promise.all(notes.map((note) => ledger.record(workspaceId, note)));
  }
  await db.close();
  const result = await verify(join(directory.path, "gatehouse.db"));
  // The entries are written without the rows of the tasks that they name.
  const found = allFindings(result).filter(({ code }) => code !== "row_changed");
  return found.map(({ code, seq }) => [code, seqs.indexOf(seq ?? 0)]);
}

const intent =
  (more: Partial<EntryDraft> = {}): Entry =>
  () => ({
    ...{ action: "tool.call", phase: "intent", outcome: "allowed", task: "task_a", tool: "up.send" },
    ...more,
  });
const outcomeOf =
  (place: number, more: Partial<EntryDraft> = {}): Entry =>
  (seqs) => ({
    ...{
      action: "tool.call",
      phase: "outcome",
      ref: seqs[place] ?? 1_000_000,
      task: "task_a",
      tool: "up.send",
    },
    ...more,
  });
const modelIntent = intent({ action: "model.call", tool: undefined, model: "up/a", detail: { reserved: 7 } });
const lostModel = (more: Partial<EntryDraft>): Entry =>
  outcomeOf(0, {
    ...{ action: "model.call", outcome: "failed", code: "interrupted", tool: undefined, model: "up/a" },
    ...more,
  });
const shown: Entry = () => ({
  ...{ action: "tool.call", outcome: "pending", code: "approval_required", task: "task_a", tool: "up.send" },
  input: '{"to":"all"}',
});
const decided =
  (action: string, more: Partial<EntryDraft> = {}, hash = "a".repeat(64)): Entry =>
  (seqs) => ({
    ...{ action, task: "task_a", tool: "up.send" },
    outcome: action === "oversight.expire" ? "denied" : "succeeded",
    oversight: { person: "Ann", decision: "approve", target_seq: seqs[0] ?? 0, arguments_hash: hash },
    ...more,
  });
/** An approval with changed arguments. Their hash is the hash of the entry's own input. */
const changed =
  (more: Partial<EntryDraft> = {}): Entry =>
  (seqs) => ({
    ...{ action: "oversight.approve", task: "task_a", tool: "up.send", input: '{"to":"one"}' },
    oversight: { person: "Ann", decision: "change", target_seq: seqs[0] ?? 0 },
    ...more,
  });
const approvedBy =
  (place: number, more: object = {}, about: Partial<EntryDraft> = {}): Entry =>
  (seqs) => ({
    ...{ action: "tool.call", phase: "intent", outcome: "allowed", task: "task_a", tool: "up.send" },
    detail: { approval_seq: seqs[place] ?? 0, ...more },
    ...about,
  });
const erasedFor =
  (document: string, requestId: string): Entry =>
  () => ({
    action: "payload.erase",
    requestId,
    detail: { reason: "document_deleted", document, payloads: "" },
  });
const deleted =
  (document: string, requestId: string): Entry =>
  () => ({
    action: "vault.delete",
    requestId,
    detail: { document },
  });

test.each<[string, readonly Entry[]]>([
  ["an outcome of another action", [intent({ action: "model.call" }), outcomeOf(0)]],
  ["an outcome of an entry that is not an intent", [intent({ phase: "single" }), outcomeOf(0)]],
  ["an outcome of a later entry", [intent(), outcomeOf(7)]],
  ["an outcome of another tool's call", [intent({ tool: "up.other" }), outcomeOf(0)]],
  ["a lost model call of another model", [modelIntent, lostModel({ model: "up/b", credits: 7 })]],
  ["a lost model call that costs more than was reserved", [modelIntent, lostModel({ credits: 8 })]],
  [
    "a tool call that costs more than its price",
    [intent({ detail: { price: 5 } }), outcomeOf(0, { credits: 6 })],
  ],
  ["a free tool call that costs something", [intent(), outcomeOf(0, { credits: 6 })]],
  ["an outcome of another task's call", [intent({ task: "task_b" }), outcomeOf(0)]],
  ["an outcome of another agent's call", [intent({ agent: "other" }), outcomeOf(0)]],
  ["an outcome of somebody else's call", [intent({ actor: "token:tok_ceo" }), outcomeOf(0)]],
  ["a decision on something that was not shown", [intent(), decided("oversight.approve")]],
  ["a decision on arguments other than those shown", [shown, decided("oversight.deny")]],
  ["an expiry of another task's call", [shown, decided("oversight.expire", { task: "task_b" })]],
  ["a change of another tool's call", [shown, changed({ tool: "up.other" })]],
])("%s is found", async (_, entries) => {
  expect(await foundIn(entries)).toEqual([["reference_differs", 1]]);
  // Even if the entry that it names is far back.
  expect(await foundIn(entries, 5_000)).toEqual([
    ["reference_differs", -1],
    ["reference_differs", 1],
  ]);
});

test.each<[string, Entry]>([
  ["the entry that asks", approvedBy(0)],
  ["an approval of another task's call", approvedBy(1, {}, { task: "task_b" })],
  ["an approval of another tool", approvedBy(1, {}, { tool: "up.other" })],
  ["an approval of other arguments", approvedBy(1, { arguments_hash: "b".repeat(64) })],
])("a call by %s is found", async (_, call) => {
  expect(await foundIn([shown, changed(), call])).toEqual([["reference_differs", 2]]);
});

test.each<[string, readonly Entry[]]>([
  ["nobody deleted", [erasedFor("doc_a", "req_a")]],
  ["somebody else's request deleted", [deleted("doc_a", "req_b"), erasedFor("doc_a", "req_a")]],
  ["is not the deleted one", [deleted("doc_b", "req_a"), erasedFor("doc_a", "req_a")]],
])("an erasure for a document that %s is found", async (_, entries) => {
  expect(await foundIn(entries)).toEqual([["reference_differs", entries.length - 1]]);
});

test("a task's end that costs more than its calls is found", async () => {
  const entries = [
    intent({ action: "task.dispatch", tool: undefined }),
    intent({ detail: { price: 5 } }),
    outcomeOf(1, { credits: 5 }),
    outcomeOf(0, { action: "task.dispatch", tool: undefined, credits: 6 }),
  ];
  expect(await foundIn(entries)).toEqual([["reference_differs", 3]]);
});

test("nothing is reported for consistent entries, including those of versions that named less", async () => {
  const entries = [
    shown,
    changed(),
    approvedBy(1),
    outcomeOf(2),
    outcomeOf(2, { tool: undefined, agent: undefined }),
    intent({ action: "task.dispatch", tool: undefined }),
    outcomeOf(5, { action: "task.dispatch", tool: undefined, credits: 0 }),
    deleted("doc_a", "req_a"),
    erasedFor("doc_a", "req_a"),
    () => ({ action: "vault.delete", requestId: "req_b" }),
    erasedFor("doc_b", "req_b"),
  ];
  expect(await foundIn(entries)).toEqual([]);
  expect(await foundIn(entries, 5_000)).toEqual([]);
});

/** An id of something that begins this many seconds from now. */
const begunIn = (prefix: "req" | "task", seconds: number) =>
  createIds({ now: () => Date.now() + seconds * 1_000 }, systemRandom)(prefix);
const revoked: Entry = () => ({
  ...{ action: "token.revoke", actor: "token:tok_admin", detail: { token: "tok_a" } },
});

test.each<[string, Made]>([
  ["a read", { action: "agent.list", requestId: begunIn("req", 3_600) }],
  ["a call", { action: "tool.call", phase: "intent", outcome: "allowed", requestId: begunIn("req", 3_600) }],
  [
    "a task's call",
    { action: "model.call", phase: "intent", outcome: "allowed", task: begunIn("task", 3_600) },
  ],
])("%s of a token after its revocation is named", async (_, made) => {
  expect(await foundIn([revoked, () => made])).toEqual([["reference_differs", 1]]);
});

test.each<[string, Made]>([
  ["a read that began before", { action: "agent.list", requestId: begunIn("req", -1) }],
  ["a read that was refused", { action: "agent.list", outcome: "denied", requestId: begunIn("req", 3_600) }],
  [
    "a read of another token",
    { action: "agent.list", actor: "token:tok_b", requestId: begunIn("req", 3_600) },
  ],
  ["the end of a task that began before", { action: "task.cancel", task: begunIn("task", -60) }],
])("%s does not count as done after its revocation", async (_, made) => {
  expect(await foundIn([revoked, () => made])).toEqual([]);
});
