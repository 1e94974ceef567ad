import type { Task, TaskEvents } from "../../../http/api.ts";
import { WrittenText } from "./written-text.ts";

/** A part of a task's activity, in event order. */
export type ActivityItem =
  | { readonly kind: "started"; readonly key: number; readonly model: string; readonly tier: number }
  | { readonly kind: "text"; readonly key: number; readonly text: WrittenText }
  | { readonly kind: "reset"; readonly key: number }
  | {
      readonly kind: "fallback";
      readonly key: number;
      readonly from: string;
      readonly to: string;
      readonly reason: string;
    }
  | ToolPiece
  | {
      readonly kind: "approval";
      readonly key: number;
      readonly callId: string;
      readonly tool: string;
      readonly decided: { readonly decision: "approve" | "deny"; readonly actor: string } | null;
    };

export interface ToolPiece {
  readonly kind: "tool";
  readonly key: number;
  readonly id: string;
  readonly tool: string;
  readonly arguments: unknown;
  /** Null while the call is in progress. */
  readonly result: { readonly status: string; readonly duration_ms: number } | null;
}

export const EVENT_NAMES = [
  "task.created",
  "task.started",
  "output.delta",
  "output.reset",
  "tool.call",
  "tool.result",
  "approval.required",
  "approval.decided",
  "model.fallback",
  "task.finished",
] as const satisfies readonly (keyof TaskEvents)[];

type EventName = (typeof EVENT_NAMES)[number];

/**
 * A task's events as pieces for display. Text is appended to its piece in place; everything else creates a new list.
 * `changed` is called for a new list, `wrote` after text was appended.
 */
export class Activity {
  #pieces: readonly ActivityItem[] = [];
  #finished: Task | null = null;
  #last = 0;
  #keys = 0;
  readonly #changed: () => void;
  readonly #wrote: () => void;

  constructor(changed: () => void, wrote: () => void) {
    this.#changed = changed;
    this.#wrote = wrote;
  }

  get pieces(): readonly ActivityItem[] {
    return this.#pieces;
  }

  /** The final task, once it has ended. */
  get finished(): Task | null {
    return this.#finished;
  }

  /** Id of the last event applied. */
  get last(): number {
    return this.#last;
  }

  /** Applies an event. Events already applied are ignored. */
  take<Name extends EventName>(id: number, name: Name, data: TaskEvents[Name]): void {
    if (id <= this.#last) return;
    this.#last = id;
    if (name === "output.delta") {
      this.#write((data as TaskEvents["output.delta"]).text);
      return;
    }
    this.#pieces = this.#after(name, data);
    this.#changed();
  }

  #write(text: string): void {
    const piece = this.#pieces.at(-1);
    if (piece?.kind === "text") {
      piece.text.add(text);
      return;
    }
    const written = new WrittenText(this.#wrote);
    written.add(text);
    this.#pieces = [...this.#pieces, { kind: "text", key: this.#key(), text: written }];
    this.#changed();
  }

  #after(name: EventName, data: TaskEvents[EventName]): readonly ActivityItem[] {
    const events: { readonly [Name in EventName]: (data: TaskEvents[Name]) => readonly ActivityItem[] } = {
      "task.created": () => this.#pieces,
      "output.delta": () => this.#pieces,
      "task.started": ({ model, tier }) => this.#with({ kind: "started", key: this.#key(), model, tier }),
      "output.reset": () => this.#reset(),
      "tool.call": (call) => this.#called(call),
      "tool.result": ({ id, status, duration_ms }) =>
        this.#pieces.map((piece) =>
          piece.kind === "tool" && piece.id === id ? { ...piece, result: { status, duration_ms } } : piece,
        ),
      "approval.required": ({ call_id: callId, tool }) =>
        this.#with({ kind: "approval", key: this.#key(), callId, tool, decided: null }),
      "approval.decided": ({ call_id, decision, actor }) =>
        this.#pieces.map((piece) =>
          piece.kind === "approval" && piece.callId === call_id
            ? { ...piece, decided: { decision, actor } }
            : piece,
        ),
      "model.fallback": (fallback) => this.#with({ kind: "fallback", key: this.#key(), ...fallback }),
      "task.finished": (task) => this.#end(task),
    };
    return (events[name] as (data: TaskEvents[EventName]) => readonly ActivityItem[])(data);
  }

  #with(piece: ActivityItem): readonly ActivityItem[] {
    return [...this.#pieces, piece];
  }

  #key(): number {
    this.#keys += 1;
    return this.#keys;
  }

  /** Discards the text since the last tool result, because the step is being retried. */
  #reset(): readonly ActivityItem[] {
    const from = this.#pieces.findLastIndex(isAnswered) + 1;
    const kept = this.#pieces.filter((piece, index) => index < from || piece.kind !== "text");
    return kept.length === this.#pieces.length ? kept : [...kept, { kind: "reset", key: this.#key() }];
  }

  /** Repeated if a person changed the arguments, or if another process makes the call. */
  #called({ id, tool, arguments: input }: TaskEvents["tool.call"]): readonly ActivityItem[] {
    const piece: ToolPiece = { kind: "tool", key: this.#key(), id, tool, arguments: input, result: null };
    const known = this.#pieces.findIndex((other) => other.kind === "tool" && other.id === id);
    return known === -1 ? this.#with(piece) : this.#pieces.with(known, piece);
  }

  /** The task's output is authoritative: it replaces the streamed text if the two differ. */
  #end(task: Task): readonly ActivityItem[] {
    this.#finished = task;
    if (task.output === null || task.output === "") return this.#pieces;
    const from = this.#pieces.findLastIndex(isAnswered) + 1;
    const texts = this.#pieces.slice(from).filter((piece) => piece.kind === "text");
    if (texts.map(({ text }) => text.text).join("") === task.output) return this.#pieces;
    const written = new WrittenText(this.#wrote);
    written.add(task.output);
    const kept = this.#pieces.filter((piece, index) => index < from || piece.kind !== "text");
    return [...kept, { kind: "text", key: this.#key(), text: written }];
  }
}

function isAnswered(piece: ActivityItem): boolean {
  return piece.kind === "tool" && piece.result !== null;
}
