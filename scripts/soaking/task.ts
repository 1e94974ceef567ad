import type { ReadEvent } from "../../test/support/events.ts";
import type { Plan } from "./plan.ts";

/** What is known of a call whose answer may have been lost. */
export type Heard = "no" | "perhaps" | "yes";

/** A task from the point of view of those who requested it. */
export interface AskedTask {
  readonly plan: Plan;
  readonly body: { readonly agent: string; readonly tier: number } & Record<string, unknown>;
  /** Whether it is dispatched by the same call that streams it. */
  readonly isStreamed: boolean;
  /** Set once an answer has arrived. */
  id: string | null;
  /** `yes` if the cancel was answered with 200. */
  cancelled: Heard;
  /** Present if the task's events are read as they arrive, through all lives of the server. */
  readonly reader: TaskReader | null;
}

/** A client that reads a task's events, and resumes where it was when the server died. */
export class TaskReader {
  /** The id of the last event read; 0 before the first. */
  lastId = 0;
  /** The current text so far. */
  text = "";
  /** Impossible events, each recorded once, because a client that resumes sees them again. */
  readonly faults = new Set<string>();
  /** How often it has resumed the stream. */
  resumed = 0;
  finished = 0;
  isReading = false;

  read({ id, event, data }: ReadEvent): void {
    if (id <= this.lastId) this.faults.add(`event ${id} came after ${this.lastId}`);
    if (this.finished > 0) this.faults.add(`${event} came after task.finished`);
    this.lastId = id;
    if (event === "output.delta") this.text += String(data.text);
    else if (event === "output.reset" || event === "tool.result") this.text = "";
    else if (event === "task.finished") this.finished++;
  }
}
