import { join } from "node:path";
import Type, { type Static, type TSchema } from "typebox";
import { type Validator, validator } from "../../../src/base/schema.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import type { Worker } from "../processes/worker.ts";
import { listening, type OverseenJob, overseenPressed } from "../servers/config.ts";
import { AGENT, settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { BACKGROUND, WAITING_TOOL } from "./names.ts";

const PROMPT = "Talk until you are stopped.";
const MEASURED = { prompt: PROMPT };
const BACKGROUND_AGENT = "background";
const STDIO_TOOL = join(import.meta.dir, "..", "servers", "waiting-tool.ts");

const accepted = validator(Type.Object({ id: Type.String() }));
const nothing = validator(Type.Object({}));
const moment = validator(Type.Object({ at: Type.Number() }));

/** Milliseconds until the last upstream call was closed, and until the answer came. */
export interface Stopped {
  readonly closed: number;
  readonly answered: number;
}

/** A gateway with an upstream whose model never stops talking, and two connectors whose tool never answers. */
export class Overseen {
  readonly gatehouse: Gatehouse;
  readonly #worker: Worker;

  private constructor(gatehouse: Gatehouse, worker: Worker) {
    this.gatehouse = gatehouse;
    this.#worker = worker;
  }

  static async start(workshop: Workshop, dataDir?: string): Promise<Overseen> {
    const worker = workshop.worker("servers/overseen.ts");
    const { port } = await worker.ask({ kind: "listen" }, listening);
    const yaml = settings({ upstream: port });
    const gatehouse = await workshop.gatehouse({ yaml, ...(dataDir === undefined ? {} : { dataDir }) });
    const agent = { owner: "benchmarks@gatehouse.example", memory_scope: "support" };
    for (const name of [AGENT, BACKGROUND_AGENT]) {
      await gatehouse.call(201, "POST", "/v1/agents", { name, ...agent, approvals: [] });
    }
    const http = { type: "http", url: `http://127.0.0.1:${port}/mcp` };
    const stdio = {
      type: "stdio",
      command: process.execPath,
      args: ["--no-env-file", STDIO_TOOL, String(port)],
    };
    for (const [name, transport] of Object.entries({ http, stdio })) {
      await gatehouse.call(201, "POST", "/v1/connectors", { name, kind: "mcp", transport });
    }
    return new Overseen(gatehouse, worker);
  }

  /** Starts this many more streams, which nobody stops. */
  async keepBusy(count: number): Promise<void> {
    const tasks = Array.from({ length: count }, () =>
      this.#dispatch({ agent: BACKGROUND_AGENT, prompt: BACKGROUND }),
    );
    await Promise.all(tasks);
  }

  /**
   * Dispatches tasks and waits until the upstream has their calls.
   * @returns their ids
   */
  async underWay(count: number, more: object = {}): Promise<string[]> {
    const ids = await Promise.all(
      Array.from({ length: count }, () => this.#dispatch({ agent: AGENT, ...MEASURED, ...more })),
    );
    await this.#ask({ kind: "until-open", count }, nothing);
    return ids;
  }

  /** Sends a POST that stops this many tasks. */
  press(path: string, count: number): Promise<Stopped> {
    const { port, admin } = this.gatehouse;
    const url = `http://127.0.0.1:${port}${path}`;
    return this.#ask({ kind: "press", url, token: admin, count }, overseenPressed);
  }

  /** When the last of this many calls was closed, in milliseconds since the Unix epoch. */
  async lastClosed(count: number): Promise<number> {
    return (await this.#ask({ kind: "last-closed", count }, moment)).at;
  }

  async stop(): Promise<void> {
    // Stop the endless talkers, so that nothing waits for them at the end.
    await this.gatehouse.call(200, "POST", `/v1/agents/${BACKGROUND_AGENT}/stop`);
    await this.gatehouse.stop();
    await this.#worker.end();
  }

  async #dispatch(body: object): Promise<string> {
    return accepted.parse(await this.gatehouse.call(202, "POST", "/v1/tasks", body)).id;
  }

  #ask<Schema extends TSchema>(job: OverseenJob, expected: Validator<Schema>): Promise<Static<Schema>> {
    return this.#worker.ask(job, expected);
  }
}

/** A task that may call this connector's tool and no other. */
export function callingTool(connector: "http" | "stdio"): object {
  return { tools: [`${connector}.${WAITING_TOOL}`] };
}
