import { systemClock } from "../../base/clock.ts";
import { print } from "../output.ts";
import type { FileScan } from "./files.ts";
import { UploadProgress } from "./progress.ts";
import { lineOf } from "./text.ts";

const STATUSES = ["added", "replaced", "unchanged", "skipped", "failed"] as const;
export type UploadStatus = (typeof STATUSES)[number];

/** The result for a file: a line of `--json`. */
export interface UploadOutcome {
  readonly path: string;
  readonly status: UploadStatus;
  /** Id of the document; null if there is none. */
  readonly id: string | null;
  readonly title: string | null;
  /** Why it was skipped or failed. */
  readonly reason: string | null;
}

/** Result fields of a file that did not become a document. */
export const NOTHING = { id: null, title: null, reason: null };

export interface ReportOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Reports the result of each file, and a summary at the end. */
export class UploadReport {
  readonly #counts: Record<UploadStatus, number> = {
    added: 0,
    replaced: 0,
    unchanged: 0,
    skipped: 0,
    failed: 0,
  };
  readonly #options: ReportOptions;
  readonly #total: number;
  readonly #progress: UploadProgress;
  #done = 0;

  constructor({ files, skipped, failed }: FileScan, options: ReportOptions) {
    this.#options = options;
    this.#total = files.length;
    this.#progress = new UploadProgress(files.length, process.stderr, () => systemClock.monotonic());
    for (const { path, reason, ending } of skipped) {
      this.#note({ ...NOTHING, path, reason, status: "skipped" }, ending === undefined);
    }
    const endings = new Set(skipped.flatMap(({ ending }) => ending ?? []));
    if (endings.size > 0) this.say(`skipped unsupported types: ${lineOf([...endings].sort().join(" "))}`);
    for (const left of failed) this.#note({ ...NOTHING, ...left, status: "failed" });
  }

  get failed(): number {
    return this.#counts.failed;
  }

  /** Files without a result yet. */
  get left(): number {
    return this.#total - this.#done;
  }

  take(outcome: UploadOutcome): void {
    this.#done++;
    this.#note(outcome);
    const beside = (["unchanged", "failed"] as const).filter((status) => this.#counts[status] > 0);
    this.#progress.step(
      this.#done,
      beside.map((status) => `${this.#counts[status]} ${status}`).join(", "),
      outcome.path,
    );
  }

  say(text: string): void {
    this.#progress.say(text);
  }

  end(): void {
    this.#progress.end();
    const counts = STATUSES.map((status) => `${status} ${this.#counts[status]}`).join(", ");
    const summary = `${this.#options.dryRun ? "dry run: " : ""}${counts}`;
    // Standard output contains only JSON lines.
    if (this.#options.json) this.say(summary);
    else print(summary);
  }

  #note(outcome: UploadOutcome, isSaid = true): void {
    const { path, status, id, title, reason } = outcome;
    this.#counts[status]++;
    if (reason !== null && isSaid) this.say(`${status}: ${lineOf(path)}: ${lineOf(reason)}`);
    if (this.#options.json) print(JSON.stringify({ path, status, id, title, reason }));
    else if (this.#options.dryRun && reason === null) print(`${status}: ${lineOf(path)}`);
  }
}
