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

export function stopped(agent: string): Problem {
  return new Problem("agent_stopped", `The agent ${agent} is stopped.`);
}

export function workspaceStopped(): Problem {
  return new Problem("agent_stopped", "The workspace is stopped, so none of its tools can be called.");
}

export function agentRemoved(): Problem {
  return new Problem("agent_not_found", "The agent that this token acts as was removed.");
}

export function draining(): Problem {
  return new Problem("draining", "The server is shutting down and accepts no new calls.", {
    headers: { "Retry-After": "5" },
  });
}

export function connectorTaken(name: string): Problem {
  return new Problem("connector_exists", `A connector named ${name} already exists.`);
}

export function unknownConnector(name: string): Problem {
  return new Problem("not_found", `There is no connector named ${JSON.stringify(name.slice(0, 100))}.`);
}
