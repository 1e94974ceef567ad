import type { ReadEvent } from "../../test/support/events.ts";
import type { Plan } from "./plan.ts";

/** What became of a call whose answer may have been lost. */
export type Heard = "no" | "perhaps" | "yes";

/** A task as those who ask for it know it. */
export interface AskedTask {
  readonly plan: Plan;
  readonly body: { readonly agent: string; readonly tier: number } & Record<string, unknown>;
  /** Whether it is dispatched by the call that also streams it. */
  readonly isStreamed: boolean;
  /** Once an answer has come back. */
  id: string | null;
  /** `yes`: the cancel was answered with 200. */
  cancelled: Heard;
  /** Of the tasks whose events are read as they come, through all lives of the server. */
  readonly reader: TaskReader | null;
}

/** A client that reads a task's events, and takes them up again where it was when the server died. */
export class TaskReader {
  /** Of the last event read; 0 before the first. */
  lastId = 0;
  /** What has come of the text that counts. */
  text = "";
  /** What cannot be, each once: who comes back meets it again. */
  readonly faults = new Set<string>();
  /** How often it has taken up the stream again. */
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
