import { AREAS } from "./areas.ts";

export interface Options {
  /** Names of areas, in their order. */
  readonly areas: readonly string[];
  readonly json: boolean;
  readonly binary: boolean;
  readonly seconds: number;
  readonly rounds: number;
}

const names = Object.keys(AREAS);

export const USAGE = `Usage: scripts/bench [area] [--json] [--binary] [--seconds N] [--rounds N]

Areas: ${names.join(", ")}. Without one, all of them.

  --json        one JSON document on standard output instead of the table (scripts/benchmarks/README.md)
  --binary      measure dist/gatehouse, as scripts/build makes it, instead of the sources
  --seconds N   length of each round, 0.2 to 60 (default 2)
  --rounds N    rounds of each contender, 1 to 50 (default 5); a warm-up round comes before`;

/** How it was called, or what is wrong with that. */
export function parseOptions(args: readonly string[]): Options | string {
  let options: Options = { areas: names, json: false, binary: false, seconds: 2, rounds: 5 };
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--json") options = { ...options, json: true };
    else if (arg === "--binary") options = { ...options, binary: true };
    else if (arg === "--seconds") {
      const seconds = Number(rest.shift());
      if (!(seconds >= 0.2 && seconds <= 60)) return "--seconds takes a number from 0.2 to 60";
      options = { ...options, seconds };
    } else if (arg === "--rounds") {
      const rounds = Number(rest.shift());
      if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 50)) return "--rounds takes 1 to 50";
      options = { ...options, rounds };
    } else if (arg.startsWith("-")) return `there is no option ${arg}`;
    else if (options.areas !== names) return "one area at a time, or none for all";
    else if (!names.includes(arg)) return `there is no area ${arg}; there are: ${names.join(", ")}`;
    else options = { ...options, areas: [arg] };
  }
  return options;
}
