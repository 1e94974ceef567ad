import { type BundleRequest, openBundle } from "../../../src/ledger/article14/bundle.ts";
import type { EntryDraft } from "../../../src/ledger/entry.ts";
import type { LedgerKeys } from "../../../src/ledger/keys/keys.ts";
import { rotateKey } from "../../../src/ledger/keys/rotation.ts";
import { draft, type LedgerBench, openLedger } from "../support.ts";

export const WORKSPACE = { id: 1, name: "w1" } as const;
const DAY_MS = 86_400_000;

/** A ledger with a signing key, from which bundles are taken. */
export interface BundleBench extends LedgerBench {
  readonly keys: LedgerKeys;
  /** Appends to the workspace's ledger, one minute later. */
  add(more?: Partial<EntryDraft>): Promise<number>;
  rotate(): Promise<void>;
  bundle(request?: Partial<BundleRequest>): AsyncGenerator<Uint8Array, void>;
  /** A complete bundle. */
  zip(request?: Partial<BundleRequest>): Promise<Blob>;
}

export async function openBench(prepare?: (path: string) => void): Promise<BundleBench> {
  const bench = await openLedger(prepare);
  const { db, clock, ledger, heads, keys } = bench;
  const parts = { db, heads, keys, clock, payloadDays: 180 };
  const bundle = (request: Partial<BundleRequest> = {}) =>
    openBundle(parts, {
      workspace: WORKSPACE,
      filter: {},
      exportedBy: { actor: "token:tok_auditor", person: "Grace Hopper", role: "auditor" },
      ...request,
    });
  return {
    ...bench,
    add(more) {
      clock.advance(60_000);
      return ledger.record(WORKSPACE.id, { ...draft(more), ...more });
    },
    rotate: () =>
      rotateKey(
        { ledger, heads, keys, clock, workspaces: () => [WORKSPACE], signed: () => {}, replaced: () => {} },
        { actor: "user:operator", channel: "rest" },
      ),
    bundle,
    async zip(request) {
      const chunks: Uint8Array<ArrayBuffer>[] = [];
      for await (const chunk of bundle(request)) chunks.push(new Uint8Array(chunk));
      return new Blob(chunks);
    },
  };
}

/** Writes the entries of some weeks in which agents worked and people oversaw them. */
export async function story(bench: BundleBench, days = 30): Promise<void> {
  const { add, clock, rotate } = bench;
  const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const issue = (token: string, detail: Record<string, string>) =>
    add({
      action: "token.issue",
      channel: "rest",
      actor: "token:tok_admin",
      detail: { token, ...detail },
    });
  await add({ action: "token.issue", detail: { token: "tok_admin", scopes: "admin" } });
  await issue("tok_ada", {
    scopes: "approvals:write ledger:read tasks:read",
    name: "ada's laptop",
    person: "Ada Lovelace",
    role: "claims supervisor",
    expires_at: "2027-01-01T00:00:00.000Z",
  });
  await issue("tok_alan", {
    scopes: "approvals:write tasks:write agents:write",
    name: "alan",
    person: "Alan Turing",
    role: "head of operations",
  });
  await issue("tok_left", {
    scopes: "approvals:write",
    name: "left",
    person: "Charles Babbage",
    role: "clerk",
  });
  await add({ action: "token.revoke", actor: "token:tok_admin", detail: { token: "tok_left" } });
  await issue("tok_bot", { scopes: "tasks:write", name: "intake" });
  for (const agent of ["claims", "scout", "mailer"]) {
    await add({
      action: "agent.create",
      channel: "rest",
      actor: "token:tok_alan",
      agent,
      detail: {
        version: 1,
        fields: "name owner tier_policy tools",
        hash: hash(agent),
        owner: "Alan Turing",
        tools: "vault.* crm.*",
      },
    });
  }
  for (let day = 0; day < days; day++) {
    for (let round = 0; round < 2 + (day % 5); round++) await oneTask(bench, hash, day, round);
    if (day % 6 === 2) await oversee(bench, "stop", "Alan Turing", "head of operations", { agent: "scout" });
    if (day % 6 === 3)
      await oversee(bench, "resume", "Alan Turing", "head of operations", { agent: "scout" });
    if (day % 7 === 1) {
      await add({
        action: "auth.refused",
        outcome: "denied",
        actor: "anonymous",
        code: "invalid_token",
        detail: { source: "203.0.113.9", count: 12 },
      });
      await add({
        action: "limit.exceeded",
        outcome: "denied",
        detail: { limit: "requests", enforcement: "enforced", before: 0 },
      });
      await add({ action: "ledger.read", channel: "rest", actor: "token:tok_ada" });
      await add({
        action: "task.cancel",
        channel: "rest",
        actor: "token:tok_alan",
        agent: "mailer",
        task: `task_c${day}`,
      });
    }
    if (day === 11) await rotate();
    if (day === 17) await add({ action: "ledger.foreign_write", outcome: "failed", detail: { commits: 1 } });
    if (day === 20)
      await add({ action: "payload.expire", detail: { up_to: 20, payload_days: 180, payloads: 9 } });
    clock.advance(DAY_MS - 40 * 60_000);
  }
}

type Scribe = Pick<BundleBench, "add" | "clock">;

async function oneTask(
  scribe: Scribe,
  hash: (text: string) => string,
  day: number,
  round: number,
): Promise<void> {
  const { add } = scribe;
  const agent = ["claims", "scout", "mailer"][(day + round) % 3] ?? "claims";
  const task = `task_${day}_${round}`.padEnd(30, "0");
  const actor = "token:tok_bot";
  const about = { agent, task, tier: 1 + (day % 2), actor };
  const input = `{"claim":${day * 10 + round}}`;
  const dispatched = await add({
    ...about,
    action: "task.dispatch",
    phase: "intent",
    outcome: "allowed",
    channel: "rest",
    input,
  });
  const model = day % 2 === 0 ? "ollama/llama3.2" : "anthropic/claude-sonnet-5";
  const call = async (name: string, attempt: number, outcome: "succeeded" | "failed") => {
    const ref = await add({
      ...about,
      action: "model.call",
      phase: "intent",
      outcome: "allowed",
      model: name,
      detail: { attempt, step: 1 },
    });
    await add({
      ...about,
      action: "model.call",
      phase: "outcome",
      ref,
      outcome,
      code: outcome === "failed" ? "model_unavailable" : undefined,
      model: name,
      credits: outcome === "failed" ? 0 : 12_500 + day * 100,
      detail: {
        duration_ms: 800 + day * 13,
        input_tokens: 900 + round,
        output_tokens: 120 + day,
        usage: "reported",
      },
    });
  };
  if (day % 4 === 3) await call("openai/gpt-6-mini", 1, "failed");
  await call(model, day % 4 === 3 ? 2 : 1, "succeeded");
  const tool = ["crm.lookup", "vault.search", "mail.send"][round % 3] ?? "vault.search";
  if (tool === "mail.send") {
    const presented = await add({
      ...about,
      action: "tool.call",
      outcome: "pending",
      code: "approval_required",
      tool,
      input,
    });
    await oversee(
      scribe,
      day % 5 === 4 ? "deny" : day % 7 === 5 ? "change" : day % 10 === 8 ? "expire" : "approve",
      day % 3 ? "Ada Lovelace" : "Alan Turing",
      day % 3 ? "claims supervisor" : "head of operations",
      {
        ...about,
        tool,
        target: presented,
        seconds: [3, 14, 75, 420, 5_000][(day + round) % 5] ?? 10,
        argumentsHash: hash(input),
      },
    );
  }
  if (day % 9 === 5) {
    await add({
      ...about,
      action: "tool.call",
      outcome: "denied",
      code: "unknown_tool",
      tool: "shell.run",
      input,
    });
  }
  const ref = await add({ ...about, action: "tool.call", phase: "intent", outcome: "allowed", tool, input });
  await add({
    ...about,
    action: "tool.call",
    phase: "outcome",
    ref,
    outcome: day % 8 === 6 ? "failed" : "succeeded",
    code: day % 8 === 6 ? "upstream_error" : undefined,
    tool,
    output: "ok",
  });
  await add({
    ...about,
    action: "task.dispatch",
    phase: "outcome",
    ref: dispatched,
    outcome: "succeeded",
    credits: 12_500,
    detail: { input_tokens: 900, output_tokens: 120, steps: 1 },
    output: "done",
  });
  if (day % 8 === 3 && round === 1) {
    const about = { agent, task, target: dispatched };
    await oversee(
      scribe,
      day % 16 === 3 ? "disregard" : "override",
      "Ada Lovelace",
      "claims supervisor",
      about,
    );
  }
  if (day % 10 === 7 && round === 0) {
    await add({
      action: "payload.erase",
      actor: "token:tok_alan",
      detail: { payloads: `${dispatched}.input ${ref}.input`, reason: "requested", target_seq: dispatched },
    });
  }
}

interface About extends Partial<EntryDraft> {
  readonly target?: number;
  /** Time between presentation and decision; if absent, nothing was presented. */
  readonly seconds?: number;
  readonly argumentsHash?: string;
}

/** Records decisions as the gateway does: about approvals, finished tasks and agents. */
async function oversee(
  { add, clock }: Scribe,
  decision: string,
  person: string,
  role: string,
  { target, seconds, argumentsHash, ...about }: About,
): Promise<void> {
  const isExpired = decision === "expire";
  const presented = clock.now();
  if (seconds !== undefined) clock.advance(seconds * 1_000);
  const decidedBy = person.startsWith("Ada") ? "token:tok_ada" : "token:tok_alan";
  await add({
    ...about,
    action: `oversight.${decision === "change" ? "approve" : decision}`,
    ...(isExpired ? { outcome: "denied", code: "expired" } : {}),
    channel: isExpired ? "system" : "rest",
    actor: isExpired ? "system" : decidedBy,
    requestId: isExpired ? undefined : "req_01kz0000000000000000000000",
    oversight: {
      person: isExpired ? "nobody" : person,
      ...(isExpired ? {} : { role }),
      decision,
      decided_at: new Date(clock.now()).toISOString(),
      ...(target === undefined ? {} : { target_seq: target }),
      ...(seconds === undefined ? {} : { presented_at: new Date(presented).toISOString() }),
      ...(argumentsHash === undefined ? {} : { arguments_hash: argumentsHash }),
    },
  });
}
