import type { Figure } from "./figures.ts";
import type { Machine } from "./machine.ts";
import type { Options } from "./options.ts";

/** What `--json` prints, one document. Fields are added, never renamed or removed, as long as `format` stays. */
export interface Report {
  readonly format: "gatehouse-bench/1";
  /** RFC 3339, UTC. */
  readonly started_at: string;
  readonly took_seconds: number;
  readonly machine: Machine;
  readonly options: {
    readonly areas: readonly string[];
    readonly program: "sources" | "binary";
    readonly seconds: number;
    readonly rounds: number;
    /** Of the vault's large collection. */
    readonly passages: number;
    /** Of the large ledger. */
    readonly entries: number;
  };
  readonly figures: readonly Figure[];
  /** What broke. The exit code is 1 when there is anything here; a missed aim is none. */
  readonly failures: readonly Failure[];
  /** What could not be measured here, for want of something that is not Gatehouse's. No failure. */
  readonly skipped: readonly Failure[];
}

/** Thrown by a scenario that needs what is not there. */
export class Skipped extends Error {}

export interface Failure {
  readonly area: string;
  readonly scenario: string;
  readonly message: string;
}

export function reportedOptions(options: Options): Report["options"] {
  const { areas, binary, seconds, rounds, passages, entries } = options;
  return { areas, program: binary ? "binary" : "sources", seconds, rounds, passages, entries };
}
