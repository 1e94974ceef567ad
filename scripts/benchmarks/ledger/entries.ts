import type { Clock } from "../../../src/base/clock.ts";
import type { EntryDraft } from "../../../src/ledger/entry.ts";

const ACTOR = "token:tok_01k9zq4v7x8h2m5n3p6r0s1t2w";
/** One in this many entries is about the rare agent. */
const RARE_EVERY = 5_000;
export const RARE_AGENT = "archivist";
export const COMMON_ACTION = "model.call";
const AGENTS = 20;
/** Time between two entries of a filled ledger. */
export const STEP_MS = 50;

/** Roughly what a task's model call records: about 550 bytes. `index`: that of its intent, counted from 0. */
export function modelCallOutcome(index: number): EntryDraft {
  return {
    phase: "outcome",
    ref: index + 1,
    action: COMMON_ACTION,
    outcome: "succeeded",
    channel: "system",
    actor: ACTOR,
    agent: agentOf(index),
    tier: 1 + (index % 3),
    model: "openai/gpt-5-mini",
    task: taskOf(index),
    credits: 1_000 + (index % 997),
    detail: {
      duration_ms: 300 + (index % 700),
      input_tokens: 800 + (index % 61),
      output_tokens: 100 + (index % 89),
      usage: "reported",
    },
  };
}

/**
 * What a busy workspace records: intents and outcomes of model calls, reads, and occasionally a person's decision.
 */
export function busyWorkspace(index: number): EntryDraft {
  switch (index % 4) {
    case 0:
      return {
        ...modelCallOutcome(index),
        phase: "intent",
        ref: undefined,
        outcome: "allowed",
        credits: undefined,
        detail: { attempt: 1, step: 1 },
      };
    case 1:
      return modelCallOutcome(index - 1);
    case 2:
      return read(index);
    default:
      return index % 1_000 === 3 ? stopped(index) : read(index);
  }
}

function read(index: number): EntryDraft {
  return {
    phase: "single",
    action: "task.read",
    outcome: "succeeded",
    channel: "rest",
    actor: ACTOR,
    requestId: `req_${idOf(index)}`,
    agent: agentOf(index),
    task: taskOf(index),
  };
}

function stopped(index: number): EntryDraft {
  return {
    phase: "single",
    action: "agent.stop",
    outcome: "succeeded",
    channel: "rest",
    actor: ACTOR,
    requestId: `req_${idOf(index)}`,
    agent: agentOf(index),
    oversight: {
      person: "Ada Obi",
      role: "compliance officer",
      decision: "stop",
      decided_at: "2026-01-01T00:00:00.000Z",
    },
  };
}

function agentOf(index: number): string {
  return index % RARE_EVERY === 0 ? RARE_AGENT : `agent-${index % AGENTS}`;
}

function taskOf(index: number): string {
  return `task_${idOf(index >> 3)}`;
}

function idOf(index: number): string {
  return index.toString(32).padStart(26, "0");
}

/** A manually set clock, for writing entries faster than their timestamps suggest. */
export class SetClock implements Clock {
  #now = 0;

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return performance.now();
  }

  after(ms: number, task: () => void): () => void {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  }

  set(now: number): void {
    this.#now = now;
  }
}
