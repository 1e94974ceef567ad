/** A task error in words, with advice. */
interface Explained {
  readonly name: string;
  readonly advice: string;
}

const EXPLAINED: Readonly<Record<string, Explained>> = {
  model_unavailable: {
    name: "no model answered",
    advice: "Check the provider's key and address in the configuration, and whether the provider is up.",
  },
  tool_loop_limit: {
    name: "too many steps",
    advice: "Raise the agent's max steps, or say in its instructions when it is done.",
  },
  timeout: {
    name: "took too long",
    advice: "Ask for less at once, or give the provider more time in the configuration.",
  },
  interrupted: {
    name: "broken off by a restart",
    advice: "See in the task which calls were out, then run it again.",
  },
  credits_exhausted: {
    name: "budget spent",
    advice: "Raise the budget in Settings or in the agent, or wait until it begins anew.",
  },
  agent_stopped: { name: "its agent was stopped", advice: "Resume the agent, then run the task again." },
  internal: {
    name: "an error of the server",
    advice: "The server's log has the cause, under the task's id.",
  },
};

export function explained(code: string): Explained {
  return EXPLAINED[code] ?? { name: code, advice: "Open the task to see what happened." };
}
