import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { EntryDraft } from "../../../src/ledger/entry.ts";
import { Unpacked } from "../verify/bundle/support.ts";
import { type BundleBench, openBench } from "./support.ts";

let bench: BundleBench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

async function report(): Promise<{ readonly page: string; readonly text: string }> {
  const page = (await Unpacked.of(await bench.zip())).text("report.html");
  const text = page
    .replace(/<style>[\s\S]*?<\/style>/, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ");
  return { page, text };
}

const issue = (token: string, more: Record<string, string>, agent?: string) =>
  bench.add({
    action: "token.issue",
    detail: { token, scopes: "approvals:write", ...more },
    ...(agent === undefined ? {} : { agent }),
  });
const decide = (
  decision: string,
  person: string,
  token: string,
  more: Partial<EntryDraft> = {},
  target?: number,
) =>
  bench.add({
    action: `oversight.${decision}`,
    actor: `token:${token}`,
    oversight: { person, decision, ...(target === undefined ? {} : { target_seq: target }) },
    ...more,
  });
const present = (task: string) =>
  bench.add({ action: "tool.call", outcome: "pending", code: "approval_required", tool: "mail.send", task });
const end = (task: string, outcome: EntryDraft["outcome"]) =>
  bench.add({ action: "task.dispatch", phase: "outcome", outcome, task });

describe("who could decide", () => {
  test("a token that acts as an agent is listed separately, and may not", async () => {
    await issue("tok_agent", { name: "bot", person: "Ada Lovelace" }, "claims");
    await issue("tok_admin", { name: "bot2", scopes: "admin" }, "claims");
    const { page, text } = await report();
    expect(page).toContain("<li><b>0</b>tokens that could decide</li>");
    expect(text).toContain("No token that could decide was recorded");
    expect(text.split("acts as the agent claims, cannot decide on calls")).toHaveLength(3);
    expect(text).toContain("None: no token that could decide names a person (section 2).");
  });

  test("people are counted once, before the table is cut", async () => {
    for (let at = 0; at < 170; at++) {
      await issue(`tok_a${at}`, { person: at % 2 ? "Ada Lovelace" : "ada lovelace " });
    }
    await issue("tok_last", { person: "Alan Turing" });
    expect((await report()).text).toContain("People named as holders of tokens that could decide: 2,");
  });
});

test("a decision by a token without a person is not attributed to a person", async () => {
  await issue("tok_ada", { name: "laptop", person: "Ada Lovelace" });
  await issue("tok_ops", { name: "Ada Lovelace" });
  await decide("stop", "Ada Lovelace", "tok_ada");
  await decide("stop", "Ada Lovelace", "tok_ops");
  await decide("resume", "Ada Lovelace", "tok_ops");
  const { text } = await report();
  expect(text).toContain("token Ada Lovelace (no person named)");
  expect(text).toContain("Decisions: 3, of which without a named person: 2.");
});

test("refusals by policy are separate from failures to serve, and from incidents", async () => {
  const denied = (code: string, more: Partial<EntryDraft> = {}) =>
    bench.add({ action: "task.dispatch", outcome: "denied", code, ...more });
  await bench.add({ action: "task.dispatch", phase: "intent", outcome: "allowed", agent: "real" });
  await denied("agent_not_found", { agent: "nowhere" });
  await denied("scope_missing", { agent: "made-up" });
  for (const code of ["validation_failed", "idempotency_conflict", "invalid_json", "body_too_large"]) {
    await denied(code);
  }
  await bench.add({ action: "oversight.expire", outcome: "denied", code: "expired" });
  await bench.add({ action: "ledger.foreign_write", outcome: "failed" });
  await bench.add({ action: "ledger.file_moved", outcome: "failed" });
  await bench.add({ action: "tool.call", outcome: "failed", code: "tool_error" });
  const { page, text } = await report();
  expect(page).toContain("<li><b>1</b>call refused by policy</li>");
  expect(page).toContain("<li><b>1</b>call failed</li>");
  expect(text).toContain("1 failure and 1 refusal by policy");
  expect(text).not.toContain("nowhere");
  expect(text).not.toContain("made-up");
  expect(text).toContain("2 names found only in refused or failed requests");
});

test("the numbers of presented calls add up", async () => {
  await decide("approve", "Ada", "tok_ada", { task: "task_0" }, 1);
  const [a, b, c] = [await present("task_a"), await present("task_b"), await present("task_c")];
  await present("task_d");
  await present("task_e");
  await present("task_f");
  await decide("approve", "Ada", "tok_ada", { task: "task_a" }, a);
  await decide("deny", "Ada", "tok_ada", { task: "task_b" }, b);
  await decide("expire", "nobody", "system", { task: "task_c", outcome: "denied", code: "expired" }, c);
  await end("task_a", "succeeded");
  await end("task_d", "cancelled");
  await end("task_e", "failed");
  const { text } = await report();
  expect(text).toContain(
    "approval: 6 = 1 approved + 1 denied + 1 expired because nobody decided in time + 2 withdrawn because their task ended first + 1 still waiting at the end of the period.",
  );
  expect(text).toContain("presented before the period: 1 decision or expiry.");
});

test("settings, decisions and actors are described in words", async () => {
  await issue("tok_0123456789abcdef0123", { name: "console", scopes: "admin" });
  await bench.add({
    action: "config.change",
    actor: "token:tok_0123456789abcdef0123",
    detail: { requests_per_minute: 60, budget: "5", checkpoint_every: 100 },
  });
  await bench.add({ action: "config.change", actor: "token:tok_unknown789abcdef0123", detail: { x: 1 } });
  for (const decision of ["change", "disregard", "override", "cancel"])
    await decide(decision, "Ada", "tok_a");
  const { text } = await report();
  for (const said of [
    "requests_per_minute: 60",
    "budget: 5",
    "checkpoint_every: 100",
    "token …abcdef0123",
    "approved with changed arguments",
    "output disregarded",
    "output overridden",
    "task cancelled",
  ]) {
    expect(text).toContain(said);
  }
  expect(text).not.toContain("token:tok_0123456789abcdef0123");
});
