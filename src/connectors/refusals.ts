import { Problem } from "../base/errors.ts";

export function tooMany(limit: number): Problem {
  return new Problem(
    "rate_limited",
    `The workspace already has ${limit} tool calls in flight. Try again later.`,
    {
      headers: { "Retry-After": "1" },
    },
  );
}

export function connectorTaken(name: string): Problem {
  return new Problem("connector_exists", `A connector named ${name} already exists.`);
}

export function unknownConnector(name: string): Problem {
  return new Problem("not_found", `There is no connector named ${JSON.stringify(name.slice(0, 100))}.`);
}
