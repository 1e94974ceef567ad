import { THRIFTY } from "../actors/paying.ts";
import { isCall, type TimedEntry } from "../evidence-file.ts";
import type { Evidence, TaskView } from "../soak.ts";
import { reservedBy } from "./budgets.ts";

/** A situation that kills must have hit, and the number of kills from which it would be strange if they had not. */
interface Meeting {
  readonly of: string;
  readonly kills: number;
  met(evidence: Evidence): boolean;
}

const MEETINGS: readonly Meeting[] = [
  {
    of: "tasks that were started again and succeeded",
    kills: 5,
    met: (evidence) => succeededAgain(evidence).length > 0,
  },
  {
    of: "tasks that had called a tool and continued from there",
    kills: 10,
    met: (evidence) => succeededAgain(evidence).some(({ tools_called }) => tools_called.length > 0),
  },
  {
    of: "tool calls that may or may not have been made",
    kills: 30,
    met: ({ tasks }) => statusesOfCalls(tasks).has("unknown") && statusesOfCalls(tasks).has("succeeded"),
  },
  {
    of: "streams whose readers came back",
    kills: 5,
    met: ({ world }) =>
      world.asked.some(({ reader }) => reader !== null && reader.resumed > 0 && reader.finished === 1),
  },
  {
    of: "what people had to decide",
    kills: 30,
    met: ({ world }) => [...world.decided.values()].some(({ isAcknowledged }) => isAcknowledged),
  },
  {
    of: "calls for which credits were reserved and which were charged accordingly",
    kills: 30,
    met: ({ file }) =>
      file.entries.some((entry) => isCall(entry) && entry.code === "interrupted" && (entry.credits ?? 0) > 0),
  },
  {
    of: "the work of an agent whose budget was spent",
    kills: 30,
    met: ({ file }) =>
      file.entries.some(({ agent, code }) => agent === THRIFTY && code === "credits_exhausted") &&
      file.entries.some((entry) => entry.agent === THRIFTY && isPaid(entry)),
  },
  {
    of: "a workspace that was stopped and then worked again",
    kills: 30,
    met: ({ file }) =>
      ["oversight.stop", "oversight.resume"].every((wanted) =>
        file.entries.some(({ action, detail }) => action === wanted && detail?.extent === "workspace"),
      ),
  },
  {
    of: "tasks that were abandoned at the third kill in the same step",
    kills: 60,
    met: ({ file }) => file.tasks.some(({ status, attempts }) => status === "failed" && attempts >= 3),
  },
  {
    of: "lives that ended in an orderly way, with work that was handed back",
    kills: 30,
    met: ({ orderlyEnds }) => orderlyEnds.some(({ givenBack }) => givenBack > 0),
  },
];

/** Kills that hit nothing of interest. A result without these situations means little. */
export function* meetingFaults(evidence: Evidence): Generator<string> {
  for (const { of, kills, met } of MEETINGS) {
    if (evidence.kills >= kills && !met(evidence)) yield of;
  }
  const asked = evidence.world.asked.length;
  const succeeded = [...evidence.tasks.values()].filter(({ status }) => status === "succeeded").length;
  if (succeeded * 3 < asked) yield `work: ${succeeded} of ${asked} tasks have succeeded`;
}

function isPaid(entry: TimedEntry): boolean {
  return isCall(entry) && entry.phase === "intent" && reservedBy(entry) > 0;
}

/** Succeeded tasks that were started more than once. */
function succeededAgain({ tasks, events }: Evidence): TaskView[] {
  const startsOf = (id: string) =>
    events.get(id)?.filter(({ event }) => event === "task.started").length ?? 0;
  return [...tasks.values()].filter(({ id, status }) => status === "succeeded" && startsOf(id) > 1);
}

function statusesOfCalls(tasks: Evidence["tasks"]): ReadonlySet<string> {
  return new Set([...tasks.values()].flatMap(({ tools_called }) => tools_called.map(({ status }) => status)));
}
