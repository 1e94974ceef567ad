import { readFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import type { ExchangesJob } from "../load/jobs.ts";
import type { Target, Workshop } from "../workshop.ts";

/** Another product's server, while it runs. */
export interface PeerServer extends Target {
  stop(): Promise<void>;
}

/** Another product that runs an agent, or passes on what a model answers. */
export interface Product {
  /** Part of the figures' ids. */
  readonly id: string;
  readonly name: string;
  /** The folder whose package.json pins the packages. */
  readonly folder: string;
  /** The package whose version is the product's. */
  readonly package: string;
  readonly runtime: "bun" | "node";
  /** What Gatehouse's rate of runs should be, divided by the product's. */
  readonly leastRate?: number;
  /** The time between two starts of sixty runs, in milliseconds. The slowest of sixty must take less. */
  readonly everyMs: number;
  /** Starts the server. Its agent's model is the model `short` at this port. */
  start(workshop: Workshop, upstream: number): Promise<PeerServer>;
  /** One run of the agent with this prompt, as sent over the wire, and the checks of its answer. */
  run(upstream: number, prompt: string): Pick<ExchangesJob, "request" | "expect">;
}

const manifest = validator(Type.Object({ version: Type.String() }));

/** The version of an installed package. */
function versionOf(folder: string, name: string): string {
  const path = join(folder, "node_modules", name, "package.json");
  return manifest.parse(JSON.parse(readFileSync(path, "utf8"))).version;
}

/** Such as `Mastra 1.71.0 on Node 24.21.0`. */
export function describe({ name, folder, package: main, runtime }: Product): string {
  const on = runtime === "bun" ? `Bun ${Bun.version}` : `Node ${versionOf(folder, "node")}`;
  return `${name} ${versionOf(folder, main)} on ${on}`;
}

/** The command that runs `server.mjs` of the folder with the Node.js from npm. */
export function nodeCommand(folder: string): string[] {
  return [join(folder, "node_modules", "node", "bin", "node"), join(folder, "server.mjs")];
}

/** What each `server.mjs` reads from its environment. */
export function serverSettings(port: number, upstream: number): Record<string, string> {
  return { PORT: String(port), UPSTREAM_URL: `http://127.0.0.1:${upstream}/v1` };
}
