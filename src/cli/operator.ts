import { userInfo } from "node:os";
import Type from "typebox";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import { validator } from "../base/schema.ts";
import type { Config } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import { OPERATOR_USER_HEADER, OPERATOR_WORKSPACE_HEADER } from "../http/caller/credential.ts";
import { DirectoryInUse, lockDirectory } from "../store/lock.ts";
import { readRuntime } from "../store/runtime.ts";

/** The REST API with the operator's rights, as used by commands. */
export interface OperatorApi {
  fetch(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<Response>;
  /** The answer as JSON. @throws OperatorError with the server's message */
  json<T>(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<T>;
}

const CONNECT_TRIES = 50;
const CONNECT_WAIT_MS = 100;

/**
 * Calls `work` with the gateway of a data directory: the running server's if there is one, otherwise one in this
 * process, which is closed afterwards. Either way the calls pass through the gate and are recorded, with the actor
 * `user:<name>`.
 */
export async function withGateway<T>(
  config: Config,
  workspace: string,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const gateway = await openUnlessInUse(config);
    if (gateway) return inThisProcess(gateway, workspace, work);
    const runtime = readRuntime(config.dataDir);
    if (runtime && (await isAnswering(runtime.url))) {
      return work(operatorApi(runtime.url, runtime.secret, workspace, fetchHere));
    }
    // Another command holds the directory briefly, or a server is starting or stopping.
    if (attempt === CONNECT_TRIES) {
      throw new OperatorError(
        `another process uses the data directory ${config.dataDir} and does not answer`,
        "find that process, and stop it or wait for it",
      );
    }
    await new Promise((resolve) => setTimeout(resolve, CONNECT_WAIT_MS));
  }
}

/**
 * Calls `work` with the running server of a data directory, for state that exists only in that process.
 * @throws OperatorError if no server is running
 */
export async function withServer<T>(
  config: Config,
  workspace: string,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  const runtime = readRuntime(config.dataDir);
  // After a server was killed, another program may answer at its address.
  if (!runtime || !isInUse(config.dataDir) || !(await isAnswering(runtime.url))) {
    throw new OperatorError(
      `no server runs on the data directory ${config.dataDir}`,
      "start one with: gatehouse serve, or choose another directory with --data",
    );
  }
  return work(operatorApi(runtime.url, runtime.secret, workspace, fetchHere));
}

export function isInUse(directory: string): boolean {
  const lock = lockDirectory(directory);
  lock?.release();
  return lock === null;
}

/** @throws OperatorError also if a decision was answered but could not be stored before this process ends */
async function inThisProcess<T>(
  gateway: Gateway,
  workspace: string,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  let lost = 0;
  let result: T;
  try {
    result = await work(
      operatorApi("http://gatehouse", gateway.operatorSecret, workspace, (r) => gateway.handle(r)),
    );
  } finally {
    lost = (await gateway.stop()).lostDecisions;
  }
  if (lost === 0) return result;
  throw new OperatorError(
    "the store cannot be written, so nothing was recorded and, without a running server, nothing took effect",
    "free some space on the disk, and repeat the command before starting a server",
  );
}

/** Opens the gateway of a data directory in this process; null if another process holds it. */
export async function openUnlessInUse(config: Config): Promise<Gateway | null> {
  const { openGateway } = await import("../gateway.ts");
  const log = createLog(config.logLevel === "info" ? "warn" : config.logLevel, systemClock);
  try {
    return await openGateway(config, { log });
  } catch (error) {
    if (error instanceof DirectoryInUse) return null;
    throw error;
  }
}

/** The server is on this machine: a proxy from the environment must not see the call or its secret. */
function fetchHere(request: Request): Promise<Response> {
  return fetch(request, { proxy: false });
}

export async function isAnswering(url: string): Promise<boolean> {
  try {
    return (await fetchHere(new Request(`${url}/livez`, { signal: AbortSignal.timeout(2_000) }))).ok;
  } catch {
    return false;
  }
}

/** Without USER in the environment, as under cron, the name is unknown and the uid is used. */
function userName(): string {
  const { username, uid } = userInfo();
  return username === "unknown" || username === "" ? `uid_${uid}` : username;
}

function operatorApi(
  url: string,
  secret: string,
  workspace: string,
  send: (request: Request) => Promise<Response>,
): OperatorApi {
  const user = userName();
  const api: OperatorApi = {
    fetch(method, path, body) {
      const headers = new Headers({
        authorization: `Bearer ${secret}`,
        [OPERATOR_USER_HEADER]: user,
        [OPERATOR_WORKSPACE_HEADER]: workspace,
      });
      if (body) headers.set("content-type", "application/json");
      return send(
        new Request(`${url}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }),
      );
    },
    async json<T>(method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<T> {
      const response = await api.fetch(method, path, body);
      if (!response.ok) throw await refusal(response);
      return (response.status === 204 ? undefined : await response.json()) as T;
    },
  };
  return api;
}

/** The server's refusal as a command-line error: invalid input becomes wrong usage. */
export async function refusal(response: Response): Promise<OperatorError> {
  const answer: unknown = await response.json().catch(() => undefined);
  if (!problem.is(answer)) return new OperatorError(`the server answered ${response.status}`);
  const { detail, code } = answer;
  const usage = response.status === 422 || response.status === 400;
  return new OperatorError(`${asOption(detail)} (${code})`, undefined, usage ? 2 : 1);
}

const problem = validator(Type.Object({ detail: Type.String(), code: Type.String() }));

/** The options and arguments that set the fields named in a refusal. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/scopes": "--scope",
  "/scope": "--scope",
  "/expires_in": "--expires",
  "/grace": "--grace",
  "/name": "the name",
  "/agent": "--agent",
  "/tier": "--tier",
  "/tools": "--tool",
  "/person": "--person",
  "/role": "--role",
  "/prompt": "the prompt",
  "/query": "the query",
  "/top_k": "--top-k",
  "/filter": "--filter",
  "/metadata": "--metadata",
  "/from": "--from",
  "/to": "--to",
  "/date": "--date",
  "/actor": "--actor",
  "/action": "--action",
};

function asOption(detail: string): string {
  const [, field = "", rest = ""] = /^(\/[a-z_]+)(?:\/\d+)?(: .*)$/s.exec(detail) ?? [];
  const option = OPTIONS[field];
  if (option === undefined) return detail;
  const isDuration = field === "/expires_in" || field === "/grace";
  return (
    option + (isDuration && rest.includes("pattern") ? ": must be a duration such as 90d, 12h or 10m" : rest)
  );
}

/** All items of a list, page after page. */
export async function listAll<T>(
  api: OperatorApi,
  path: string,
  filter: Readonly<Record<string, string>> = {},
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ ...filter, limit: "200", ...(cursor === null ? {} : { cursor }) });
    const page: { data: T[]; next_cursor: string | null } = await api.json("GET", `${path}?${query}`);
    items.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return items;
}
