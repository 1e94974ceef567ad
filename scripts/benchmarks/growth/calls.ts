import { encodeCursor } from "../../../src/http/answer/page.ts";
import type { ExchangesJob } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { TIER, taskRequest, upstreamRequest } from "../setup.ts";
import type { FilledHistory } from "./filled.ts";
import { agentName } from "./size.ts";

/** A call on a history of some length. The same calls are made on each. */
export interface GrowthCall {
  readonly label: string;
  readonly status: number;
  /** What every answer contains. */
  readonly text: string;
  /** The more agents there are, the farther apart are the tasks and entries of each. So it has no aim. */
  readonly grows?: true;
  requests(history: FilledHistory, gatehouse: Gatehouse): readonly string[];
}

const LIMIT = 50;
/** Different agents, entries and tasks that are read in turn. */
const DIFFERENT = 200;

/** Everything on the way of a call, by name. */
export const CALLS: Readonly<Record<string, GrowthCall>> = {
  run: {
    ...{ label: "a task run", status: 200, text: '"status":"succeeded"' },
    requests: (_, { admin: token }) => [
      requestText("POST", "/v1/tasks?stream=true", { token, body: taskRequest(TIER.short) }),
    ],
  },
  dispatch: {
    ...{ label: "a dispatch, answered before the run", status: 202, text: '"status":"queued"' },
    requests: (_, { admin: token }) => [
      requestText("POST", "/v1/tasks", { token, body: taskRequest(TIER.short) }),
    ],
  },
  completion: {
    ...{ label: "a completion with evidence", status: 200, text: "chat.completion" },
    requests: (_, { admin: token }) => {
      const body = { ...upstreamRequest("short"), model: "fake/short", stream: false };
      return [requestText("POST", "/v1/chat/completions", { token, body })];
    },
  },
  tool: {
    ...{ label: "a tool call", status: 200, text: '"now"' },
    requests: (_, { admin: token }) => [requestText("POST", "/v1/tools/time.now/call", { token, body: {} })],
  },
  task: {
    ...{ label: "GET of a task", status: 200, text: '"status":"succeeded"' },
    requests: ({ tasks }, gatehouse) =>
      reads(
        gatehouse,
        tasks.map((id) => `/v1/tasks/${id}`),
      ),
  },
  events: {
    ...{ label: "the events of a task", status: 200, text: "event: task.finished" },
    requests: ({ tasks }, gatehouse) =>
      reads(
        gatehouse,
        tasks.map((id) => `/v1/tasks/${id}/events`),
      ),
  },
  agent: {
    ...{ label: "GET of an agent", status: 200, text: '"memory_scope":' },
    requests: ({ size: { agents } }, gatehouse) =>
      reads(
        gatehouse,
        spread(agents, (index) => `/v1/agents/${agentName(index)}`),
      ),
  },
  tasks: page("the newest tasks", () => ["/v1/tasks"]),
  tasks_deep: page("tasks from the middle on", ({ tasks }) => [
    `/v1/tasks?cursor=${encodeCursor(tasks[tasks.length >> 1] ?? "")}`,
  ]),
  tasks_of_agent: {
    grows: true,
    ...page("an agent's tasks that succeeded", ({ size: { agents } }) =>
      spread(agents, (index) => `/v1/tasks?agent=${agentName(index)}&status=succeeded`),
    ),
  },
  documents: page("documents", () => ["/v1/vault/documents"]),
  // From the end of the history backwards: the entries of the documents come after it.
  entries: page("the last searches in the ledger", ({ size: { entries } }) => [
    `/v1/ledger?order=desc&action=vault.search&cursor=${encodeCursor(String(entries))}`,
  ]),
  entries_deep: page("searches in the ledger, from the middle on", ({ size: { entries } }) => [
    `/v1/ledger?action=vault.search&cursor=${encodeCursor(String(entries >> 1))}`,
  ]),
  entries_of_agent: {
    grows: true,
    ...page("an agent's last entries in the ledger", ({ size: { entries } }) => [
      `/v1/ledger?order=desc&agent=${agentName(0)}&cursor=${encodeCursor(String(entries))}`,
    ]),
  },
  proof: {
    ...{ label: "a proof of an entry", status: 200, text: '"checkpoint":' },
    requests: ({ size: { entries } }, gatehouse) =>
      reads(
        gatehouse,
        spread(entries, (index) => `/v1/ledger/${index + 1}/proof`),
      ),
  },
  checkpoint: {
    ...{ label: "a checkpoint", status: 200, text: "gatehouse/" },
    requests: (_, gatehouse) => reads(gatehouse, ["/v1/ledger/checkpoint"]),
  },
  search: {
    ...{ label: "a search in one boundary of 100 documents", status: 200, text: '"results":[{' },
    requests: ({ searches }) => searches,
  },
};

/** One caller makes the requests in turn. */
export function jobOf({ status, text, requests }: GrowthCall, history: FilledHistory, gatehouse: Gatehouse) {
  const job: Pick<ExchangesJob, "request" | "connections" | "spreadMs" | "expect"> = {
    request: [[...requests(history, gatehouse)]],
    connections: 1,
    spreadMs: 0,
    expect: { status, texts: [text] },
  };
  return job;
}

function page(label: string, paths: (history: FilledHistory) => readonly string[]): GrowthCall {
  return {
    ...{ label: `a page of ${LIMIT} of ${label}`, status: 200, text: '"data":[{' },
    requests: (history, gatehouse) =>
      reads(
        gatehouse,
        paths(history).map((path) => `${path}${path.includes("?") ? "&" : "?"}limit=${LIMIT}`),
      ),
  };
}

function reads({ admin: token }: Gatehouse, paths: readonly string[]): string[] {
  return paths.map((path) => requestText("GET", path, { token }));
}

/** Numbers below `count`, evenly spread, in an order that is not theirs. */
function spread<T>(count: number, of: (index: number) => T): T[] {
  const different = Math.min(DIFFERENT, count);
  const stride = 73;
  return Array.from({ length: different }, (_, at) =>
    of(Math.floor((((at * stride) % different) / different) * count)),
  );
}
