/**
 * A call is made at most once, and only as approved, whatever people, clocks, stops and restarts do, in any order.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../../support/clock.ts";
import { ledger, unsettled, until } from "../support.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

setDefaultTimeout(120_000);

const DAY = 24 * 3_600_000;
const PEOPLE = ["Ann", "Bo", "Cy"] as const;

const person = fc.constantFrom(...PEOPLE);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("approve" as const), person }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("deny" as const), person }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("change" as const), person, to: fc.constantFrom("x", "y") }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("cancel", "stop", "expire") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
/** The steps of one turn happen at the same time. */
const turns = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 });

interface Entry {
  readonly action: string;
  readonly phase: string;
  readonly outcome: string;
  readonly task?: string;
  readonly input_hash?: string | null;
  readonly oversight?: { readonly person: string; readonly arguments_hash: string };
}

async function take(
  stage: ApprovalStage,
  clock: FakeClock,
  tokens: ReadonlyMap<string, string>,
  asked: Asked,
  what: Step,
) {
  switch (what.kind) {
    case "restart":
      return;
    case "expire":
      clock.setWall(clock.now() + DAY);
      clock.advance(5_000);
      return;
    case "cancel":
      await stage.gateway.call("POST", `/v1/tasks/${asked.task}/cancel`);
      return;
    case "stop":
      await stage.gateway.call("POST", "/v1/agents/careful/stop");
      return;
  }
  if (!("person" in what)) return;
  const [now] = await stage.pending();
  const hash = now === undefined ? {} : { arguments_hash: now.arguments_hash };
  const body = {
    decision: what.kind === "deny" ? "deny" : "approve",
    ...hash,
    ...("to" in what ? { arguments: { to: what.to } } : {}),
  };
  const { status } = await stage.decide(asked.path, body, tokens.get(what.person));
  expect([200, 409]).toContain(status);
}

/** Reads the ledger in order and compares the call with what people had decided before it. */
function check(entries: readonly Entry[], required: number, made: number): void {
  let hash: string | undefined;
  let isOver = false;
  let intents = 0;
  const votes = new Set<string>();
  for (const { action, phase, outcome, input_hash, oversight } of entries) {
    if (outcome === "pending") hash = input_hash ?? undefined;
    if (outcome === "succeeded" && action === "oversight.approve" && oversight) {
      expect(isOver).toBe(false);
      if (typeof input_hash === "string") {
        votes.clear();
        hash = input_hash;
      }
      expect<string | undefined>(oversight.arguments_hash).toBe(hash);
      expect(votes.has(oversight.person)).toBe(false);
      votes.add(oversight.person);
    }
    if (outcome === "succeeded" && (action === "oversight.deny" || action === "task.cancel")) isOver = true;
    if (action === "oversight.expire") isOver = true;
    if (action === "tool.call" && phase === "intent") {
      intents += 1;
      expect(votes.size).toBeGreaterThanOrEqual(required);
    }
  }
  expect(intents).toBeLessThanOrEqual(1);
  expect(made).toBeLessThanOrEqual(intents);
}

test("a call is made at most once, and only if enough different people approved it", async () => {
  await fc.assert(
    fc.asyncProperty(turns, fc.constantFrom(1, 2), async (story, required) => {
      const clock = new FakeClock();
      const stage = await startApprovals({ approvals_required: required }, { clock });
      try {
        const tokens = new Map<string, string>();
        for (const name of PEOPLE) {
          tokens.set(name, await stage.gateway.token({ scopes: ["approvals:write"], person: name }));
        }
        const asked = await stage.ask();
        for (const turn of story) {
          await Promise.all(turn.map((what) => take(stage, clock, tokens, asked, what)));
          if (turn.some(({ kind }) => kind === "restart")) await stage.restart();
        }
        await stage.gateway.call("POST", `/v1/tasks/${asked.task}/cancel`);
        await until(async () => (await stage.task(asked.task)).finished_at !== null);
        const entries = (await ledger(stage.gateway)) as never as Entry[];
        check(
          entries.filter(({ task }) => task === asked.task),
          required,
          stage.tools.calls.length,
        );
        expect(unsettled(entries as never)).toEqual([]);
        expect(await stage.pending()).toEqual([]);
      } finally {
        await stage.stop();
      }
    }),
    { numRuns: 15 },
  );
});

test("a cancel at the moment of the decision ends the task, or comes after its end", async () => {
  const stage = await startApprovals();
  try {
    for (let round = 0; round < 20; round++) {
      const asked = await stage.ask();
      const before = stage.tools.calls.length;
      const [decided, cancelled] = await Promise.all([
        stage.decide(asked.path, { decision: "approve" }),
        stage.gateway.call("POST", `/v1/tasks/${asked.task}/cancel`),
      ]);
      expect([200, 409]).toContain(decided.status);
      expect([200, 409]).toContain(cancelled.status);
      await until(async () => (await stage.task(asked.task)).finished_at !== null);
      const { status } = await stage.task(asked.task);
      expect(status).toBe(cancelled.status === 200 ? "cancelled" : "succeeded");
      expect(stage.tools.calls.length - before).toBeLessThanOrEqual(decided.status === 200 ? 1 : 0);
    }
  } finally {
    await stage.stop();
  }
});
