import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config/load.ts";
import { type Gateway, type GatewayOptions, openGateway } from "../../src/gateway.ts";
import { readRuntime } from "../../src/store/runtime.ts";
import type { TestDatabase } from "./postgres/database.ts";
import { engineDatabase } from "./postgres/engine.ts";

export interface TestGatewayOptions extends GatewayOptions {
  /** The text of gatehouse.yaml. */
  readonly yaml?: string;
  /** An existing data directory, which is not removed at the end. */
  readonly dataDir?: string;
  /** The store, shared with other gateways. Not removed at the end. */
  readonly database?: Pick<TestDatabase, "url"> & { readonly directUrl?: string };
  /** Whether the store is SQLite in any run, because the test is about its files. */
  readonly isOnFiles?: boolean;
  /** The secret of the admin token. */
  readonly admin?: string;
  /** Called when the gateway has read its store, before it resumes any task. */
  opened?(dataDir: string): void;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; null for an empty body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
}

/** A whole gateway in this process, on a real port, with its own data directory. */
export interface TestGateway {
  readonly url: string;
  readonly dataDir: string;
  /** Of the store, if that is PostgreSQL. */
  readonly databaseUrl: string | null;
  /** Secret of an admin token for the workspace `default`. */
  readonly admin: string;
  readonly gateway: Gateway;
  /** Makes one call; if `token` is null, it has no Authorization header. Default: the admin's token. */
  call(method: string, path: string, options?: CallOptions): Promise<Answered>;
  /** Creates an agent with the three required fields and any others given. */
  agent(name: string, fields?: object): Promise<void>;
  /** Issues a token and returns its secret. */
  token(request: object): Promise<string>;
  /** Creates another workspace and returns the secret of an admin token for it. */
  workspace(name: string): Promise<string>;
  stop(): Promise<void>;
}

export interface CallOptions {
  readonly token?: string | null;
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly raw?: string | Uint8Array | ReadableStream<Uint8Array>;
  readonly headers?: Record<string, string>;
}

/** The master key of all tests with a store that nodes share. */
export const MASTER_KEY = "5".repeat(64);

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const admin = options.admin ?? createSecret(systemRandom);
  if (options.yaml !== undefined) writeFileSync(join(dataDir, "gatehouse.yaml"), options.yaml);
  const { config } = loadConfig({
    flags: { data: dataDir, listen: "127.0.0.1:0" },
    env: { GATEHOUSE_ADMIN_TOKEN: admin },
    cwd: dataDir,
  });
  const own = options.database === undefined && !options.isOnFiles ? await engineDatabase(dataDir) : null;
  const database: TestGatewayOptions["database"] | null = options.database ?? own;
  const shared = database && {
    store: { url: database.url, ...(database.directUrl && { directUrl: database.directUrl }) },
    masterKey: MASTER_KEY,
  };
  const gateway = await openGateway(
    { ...config, ...shared },
    { log: silentLog, handOverAdmin: () => {}, rerunWork: true, ...options },
  );
  options.opened?.(dataDir);
  const published = await gateway.start();
  // `public_url` may be a name that does not resolve here.
  const url = readRuntime(dataDir)?.url ?? published;

  async function call(method: string, path: string, { token, body, raw, headers = {} }: CallOptions = {}) {
    const sent = new Headers(headers);
    if (token !== null) sent.set("authorization", `Bearer ${token ?? admin}`);
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    if (payload !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
    const response = await fetch(url + path, {
      method,
      headers: sent,
      ...(payload === undefined ? {} : { body: payload }),
    });
    const text = await response.text();
    const json = /json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : json ? JSON.parse(text) : text,
    };
  }

  async function must(status: number, method: string, path: string, options: CallOptions) {
    const answer = await call(method, path, options);
    if (answer.status !== status)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  return {
    url,
    dataDir,
    databaseUrl: database?.url ?? null,
    admin,
    gateway,
    call,
    async agent(name, fields = {}) {
      await must(201, "POST", "/v1/agents", {
        body: { name, owner: "tests", memory_scope: "support", ...fields },
      });
    },
    async token(request) {
      return (await must(201, "POST", "/v1/tokens", { body: { name: "test", ...request } })).secret as string;
    },
    async workspace(name) {
      const operator = { token: gateway.operatorSecret, headers: { "gatehouse-operator": "tests" } };
      await must(201, "POST", "/operator/workspaces", { ...operator, body: { name } });
      const inside = { ...operator, headers: { ...operator.headers, "gatehouse-workspace": name } };
      const issued = await must(201, "POST", "/v1/tokens", {
        ...inside,
        body: { name: "admin", scopes: ["admin"] },
      });
      return issued.secret as string;
    },
    async stop() {
      await gateway.stop();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
      own?.giveUp();
    },
  };
}
