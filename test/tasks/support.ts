import { type Behaviour, type FakeModel, type Script, startFakeModel } from "../support/fake-model.ts";
import {
  type Answered,
  startGateway,
  type TestGateway,
  type TestGatewayOptions,
} from "../support/gateway.ts";

export interface StageOptions extends Omit<TestGatewayOptions, "yaml"> {
  /** Names of the upstream's models per tier. Default: tier 1 `a`, `b`; tier 2 `c`. */
  readonly tiers?: Readonly<Record<number, readonly string[]>>;
  /** Prices of the upstream's models. */
  readonly prices?: Readonly<Record<string, readonly [input: number, output: number]>>;
  readonly limits?: Readonly<Record<string, number | string>>;
  readonly timeoutMs?: number;
  /** More providers, as YAML of one line each. */
  readonly providers?: Readonly<Record<string, string>>;
  readonly upstream?: FakeModel;
  /** More lines of gatehouse.yaml. */
  readonly more?: string;
}

/** A gateway whose tiers lead to a scripted upstream named `up`. */
export interface Stage {
  readonly gateway: TestGateway;
  readonly upstream: FakeModel;
  stop(): Promise<void>;
}

export async function startStage(options: StageOptions = {}): Promise<Stage> {
  const { tiers, prices, limits, timeoutMs, providers, upstream: given, more, ...rest } = options;
  const upstream = given ?? startFakeModel();
  const gateway = await startGateway({ ...rest, yaml: yamlOf(upstream.url, options) });
  return {
    gateway,
    upstream,
    async stop() {
      await gateway.stop();
      if (!given) await upstream.close();
    },
  };
}

export function yamlOf(url: string, options: StageOptions): string {
  const { tiers = { 1: ["a", "b"], 2: ["c"] }, prices = {}, limits = {}, timeoutMs = 60_000 } = options;
  const lines = [
    "providers:",
    `  up: { kind: openai-compatible, base_url: "${url}", timeout_ms: ${timeoutMs} }`,
    ...Object.entries(options.providers ?? {}).map(([name, text]) => `  ${name}: ${text}`),
    "tiers:",
    ...Object.entries(tiers).map(
      ([tier, models]) => `  ${tier}: { models: [${models.map(modelName).join(", ")}] }`,
    ),
    `limits: ${JSON.stringify({ requests_per_minute: 1_000_000, ...limits })}`,
    ...(options.more === undefined ? [] : [options.more]),
  ];
  const priced = Object.entries(prices);
  if (priced.length > 0) lines.push("models:");
  for (const [model, [input, output]] of priced) {
    lines.push(`  ${modelName(model)}: { input: ${input}, output: ${output} }`);
  }
  return `${lines.join("\n")}\n`;
}

function modelName(name: string): string {
  return name.includes("/") ? name : `up/${name}`;
}

/** Dispatches a task and returns its id. */
export async function dispatch(
  gateway: TestGateway,
  request: object,
  options: { readonly token?: string; readonly headers?: Record<string, string> } = {},
): Promise<string> {
  const answer = await gateway.call("POST", "/v1/tasks", { ...options, body: { prompt: "hi", ...request } });
  if (answer.status !== 202) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body.id;
}

/** Opens a stream of a task's events; `query` is appended to the URL as it is. */
export function openEvents(
  gateway: TestGateway,
  id: string,
  headers: Record<string, string> = {},
  query = "",
): Promise<Response> {
  return fetch(`${gateway.url}/v1/tasks/${id}/events${query}`, {
    headers: { authorization: `Bearer ${gateway.admin}`, ...headers },
  });
}

/** Waits for the end of a task without polling, and returns the task. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
export async function ended(gateway: TestGateway, id: string, token?: string): Promise<any> {
  await (await openEvents(gateway, id)).text();
  return (await gateway.call("GET", `/v1/tasks/${id}`, token === undefined ? {} : { token })).body;
}

/** Dispatches a task, waits for its end and returns it. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
export async function run(gateway: TestGateway, request: object): Promise<any> {
  return ended(gateway, await dispatch(gateway, request));
}

/** A promise that the test settles. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** A script that reports when it is called, and ends no answer before the gate is opened. */
export function held(
  behaviour: Behaviour = { chunks: ["held"] },
): Gate & { script: Script; asked: Promise<void> } {
  const called = gate();
  const end = gate();
  return {
    ...end,
    asked: called.opened,
    script: () => {
      called.open();
      return { ...behaviour, gate: end.opened };
    },
  };
}

export { until } from "../support/until.ts";

export interface Entry {
  readonly seq: number;
  readonly phase: string;
  readonly action: string;
  readonly outcome: string;
  readonly code?: string;
  readonly ref?: number;
  readonly task?: string;
  readonly tool?: string;
  readonly model?: string;
  readonly agent?: string;
  readonly tier?: number;
  readonly actor?: string;
  readonly credits?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly oversight?: Readonly<Record<string, unknown>> | null;
}

/** The whole ledger of the token's workspace, oldest first. */
export async function ledger(gateway: TestGateway, token?: string): Promise<Entry[]> {
  const all: Entry[] = [];
  let cursor: string | null = null;
  do {
    const from: string = cursor === null ? "" : `&cursor=${cursor}`;
    const answer: Answered = await gateway.call("GET", `/v1/ledger?limit=200${from}`, token ? { token } : {});
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    all.push(...answer.body.data);
    cursor = answer.body.next_cursor;
  } while (cursor !== null);
  return all;
}

/** Intents without exactly one outcome, and outcomes without an intent. */
export function unsettled(entries: readonly Entry[]): string[] {
  const outcomes = new Map<number, number>();
  const problems: string[] = [];
  const intents = new Map(
    entries.filter(({ phase }) => phase === "intent").map((entry) => [entry.seq, entry]),
  );
  for (const entry of entries) {
    if (entry.phase !== "outcome") continue;
    const intent = intents.get(entry.ref ?? 0);
    if (intent?.action !== entry.action) problems.push(`${entry.seq} ${entry.action} settles nothing`);
    outcomes.set(entry.ref ?? 0, (outcomes.get(entry.ref ?? 0) ?? 0) + 1);
  }
  for (const { seq, action } of intents.values()) {
    const count = outcomes.get(seq) ?? 0;
    if (count !== 1) problems.push(`${seq} ${action} has ${count} outcomes`);
  }
  return problems;
}
