import type { Figure } from "./figures.ts";
import type { Machine } from "./machine.ts";
import type { Options } from "./options.ts";

/**
 * The single document that `--json` prints. As long as `format` stays the same, fields are added but never renamed or
 * removed.
 */
export interface Report {
  readonly format: "gatehouse-bench/1";
  /** RFC 3339, in UTC. */
  readonly started_at: string;
  readonly took_seconds: number;
  readonly machine: Machine;
  readonly options: {
    readonly areas: readonly string[];
    /** Parts of the names of the measured scenarios; all of them if empty. */
    readonly only: readonly string[];
    readonly program: "sources" | "binary";
    readonly seconds: number;
    readonly rounds: number;
    /** The size of the vault's large collection. */
    readonly passages: number;
    /** The size of the large ledger. */
    readonly entries: number;
  };
  readonly figures: readonly Figure[];
  /** What has to be known to read the figures. */
  readonly notes: readonly string[];
  /** What failed. The exit code is 1 if there is anything here. A missed aim is not a failure. */
  readonly failures: readonly Failure[];
  /** What could not be measured because something outside Gatehouse is missing. Not a failure. */
  readonly skipped: readonly Failure[];
}

/** Thrown by a scenario if something that it needs is missing. */
export class Skipped extends Error {}

export interface Failure {
  readonly area: string;
  readonly scenario: string;
  readonly message: string;
}

export function reportedOptions(options: Options): Report["options"] {
  const { areas, only, binary, seconds, rounds, passages, entries } = options;
  return { areas, only, program: binary ? "binary" : "sources", seconds, rounds, passages, entries };
}
