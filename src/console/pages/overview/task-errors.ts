/** A task error in words, with advice. */
interface ErrorExplanation {
  readonly name: string;
  readonly advice: string;
}

const EXPLAINED: Readonly<Record<string, ErrorExplanation>> = {
  model_unavailable: {
    name: "no model answered",
    advice: "Check the provider's key and address in the configuration, and whether the provider is up.",
  },
  tool_loop_limit: {
    name: "too many steps",
    advice: "Raise the agent's max steps, or have its instructions say when the task is done.",
  },
  output_invalid: {
    name: "output did not match its schema",
    advice: "Simplify the schema, or state in the prompt what you need.",
  },
  document_unavailable: {
    name: "a document was unavailable",
    advice: "Start the task again without the document, or with the one that replaced it.",
  },
  timeout: {
    name: "took too long",
    advice: "Split the task, or raise the provider's timeout in the configuration.",
  },
  interrupted: {
    name: "interrupted by a restart",
    advice: "Check in the task which calls were in progress, then run it again.",
  },
  credits_exhausted: {
    name: "budget spent",
    advice: "Raise the budget in Settings or in the agent, or wait until its next period.",
  },
  agent_stopped: { name: "its agent was stopped", advice: "Resume the agent, then run the task again." },
  internal: {
    name: "server error",
    advice: "Look up the task's id in the server's log to find the cause.",
  },
};

export function explained(code: string): ErrorExplanation {
  return EXPLAINED[code] ?? { name: code, advice: "Open the task to see what happened." };
}
