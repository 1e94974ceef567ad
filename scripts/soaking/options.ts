/** The options of `scripts/soak`. */
import { FAULT_KINDS, type FaultKind } from "./nodes/disturbing.ts";

export interface SoakOptions {
  /** How often the server is killed, including the times when it is only starting. */
  readonly kills: number;
  /** Time after which no more kills follow, whatever `kills` says. Null means no limit. */
  readonly seconds: number | null;
  /** The seed of random moments and choices. */
  readonly seed: number;
  /** Whether `dist/gatehouse` is killed instead of the sources. */
  readonly binary: boolean;
  /** How many servers share a store. Null means a single server with a data directory. */
  readonly nodes: number | null;
  /** What happens to several servers. */
  readonly fault: FaultKind | "all";
}

export const USAGE = `Usage: scripts/soak [--kills N] [--seconds S] [--seed N] [--binary]
       scripts/soak --nodes N [--fault KIND] [--seconds S] [--seed N] [--binary]

Runs a Gatehouse under load, kills it with SIGKILL at random moments, even while it starts, and checks after each kill that
the ledger verifies; now and then it ends it in an orderly way, by SIGTERM. At the end it checks that no accepted task is lost
or has ended twice, that none was abandoned before three kills in the same step, that no tool was called twice, that each
intent has one outcome, that credits and events add up, that no budget was overdrawn, and that the kills hit the situations
that they are meant for: fewer than 5 kills need not hit any of them, 60 or more must hit all.

  --kills N    how often it is killed, 1 to 100000 (default 200); orderly ends are not counted
  --seconds S  no more kills after this time, 1 to 86400 (default: no limit)
  --seed N     seed of the random moments and choices, 0 to 4294967295 (default: another one each time; it is printed)
  --nodes N    N servers, 2 to 8, that share a PostgreSQL of their own, instead of one; every 20 seconds something happens to
               them, and at the end the database is copied into a data directory and checked
  --fault KIND what happens: kill (default), stop (30 seconds of SIGSTOP), terminate (all sessions of the database, for 5
               seconds), postgres (PostgreSQL is killed and started again), clocks (5 minutes apart, and kills), or all
  --binary     dist/gatehouse, as scripts/build makes it, instead of the sources

Exit codes: 0 no fault was found, 1 faults were found, or it failed, 2 the arguments were wrong.`;

const GREATEST_SEED = 2 ** 32 - 1;

/** The options in the arguments, or what is wrong with them. */
export function parseOptions(args: readonly string[], anySeed: () => number): SoakOptions | string {
  let kills = 200;
  let seconds: number | null = null;
  let seed: number | null = null;
  let binary = false;
  let nodes: number | null = null;
  let fault: FaultKind | "all" = "kill";
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    switch (arg) {
      case "--binary":
        binary = true;
        break;
      case "--nodes": {
        const number = wholeNumber(rest.shift(), 2, 8);
        if (number === null) return "--nodes takes 2 to 8";
        nodes = number;
        break;
      }
      case "--fault": {
        const named = rest.shift();
        const known = named === "all" ? named : FAULT_KINDS.find((kind) => kind === named);
        if (known === undefined) return `--fault takes ${FAULT_KINDS.join(", ")} or all`;
        fault = known;
        break;
      }
      case "--kills": {
        const number = wholeNumber(rest.shift(), 1, 100_000);
        if (number === null) return "--kills takes 1 to 100000";
        kills = number;
        break;
      }
      case "--seconds": {
        const number = wholeNumber(rest.shift(), 1, 86_400);
        if (number === null) return "--seconds takes 1 to 86400";
        seconds = number;
        break;
      }
      case "--seed": {
        const number = wholeNumber(rest.shift(), 0, GREATEST_SEED);
        if (number === null) return `--seed takes 0 to ${GREATEST_SEED}`;
        seed = number;
        break;
      }
      default:
        return arg.startsWith("-") ? `there is no option ${arg}` : `there is nothing to do with ${arg}`;
    }
  }
  return { kills, seconds, seed: seed ?? anySeed(), binary, nodes, fault };
}

function wholeNumber(text: string | undefined, least: number, most: number): number | null {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return null;
  const value = Number(text);
  return value >= least && value <= most ? value : null;
}
