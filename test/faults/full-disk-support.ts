/** A gateway on a disk that can be filled, with every kind of upstream. Each upstream counts what reaches it. */
import { createLog, type LogFields } from "../../src/base/log.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { type Entry, until } from "../tasks/support.ts";

export interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

export interface FullDiskStage {
  gateway: TestGateway;
  readonly disk: SmallDisk;
  readonly clock: FakeClock;
  readonly model: FakeModel;
  readonly tools: ScriptedMcp;
  readonly embeddings: FakeEmbeddings;
  /** The log, oldest line first. */
  readonly lines: readonly Line[];
  /** Fills the disk and proves that nothing can be recorded any more. */
  fill(): Promise<void>;
  /** Frees the disk and proves it; the clock is stopped. */
  free(): Promise<void>;
  /** Advances the clock by one second at a time until the condition holds. */
  untilLater(condition: () => boolean | Promise<boolean>): Promise<void>;
  /** Stops the gateway and starts another on the same data. */
  restart(): Promise<void>;
  /** Requests that have reached an upstream so far: models', tools', embeddings'. */
  sent(): readonly [models: number, tools: number, embeddings: number];
  stop(): Promise<void>;
}

export interface LateEntry extends Entry {
  readonly ts: string;
  readonly request_id: string | null;
  readonly oversight: Readonly<Record<string, unknown>> | null;
}

export interface StageOptions {
  readonly limits?: Readonly<Record<string, number | string>>;
  readonly embeds?: boolean;
}

export async function startFullDiskStage({
  limits = {},
  embeds = false,
}: StageOptions = {}): Promise<FullDiskStage> {
  const disk = smallDisk();
  const clock = new FakeClock();
  const model = startFakeModel();
  const tools = startScriptedMcp(["echo"]);
  const embeddings = startFakeEmbeddings();
  const lines: Line[] = [];
  const log = createLog("info", clock, (line) => lines.push(JSON.parse(line) as Line));
  const yaml = [
    "providers:",
    `  up: { kind: openai-compatible, base_url: "${model.url}" }`,
    `  vec: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`,
    "tiers: { 1: { models: [up/a] } }",
    ...(embeds ? ["embeddings: { model: vec/words }"] : []),
    `limits: ${JSON.stringify({ requests_per_minute: 1_000_000, ...limits })}`,
  ].join("\n");
  const open = () => startGateway({ dataDir: disk.path, clock, log, yaml });
  const stage: FullDiskStage = {
    gateway: await open(),
    disk,
    clock,
    model,
    tools,
    embeddings,
    lines,
    async fill() {
      disk.fill();
      await until(async () => (await stage.gateway.call("GET", "/v1/agents")).status === 503);
    },
    async free() {
      disk.free();
      await until(async () => (await stage.gateway.call("GET", "/v1/agents")).status === 200);
    },
    async untilLater(condition) {
      await until(async () => {
        if (await condition()) return true;
        clock.advance(1_000);
        return false;
      });
    },
    async restart() {
      await stage.gateway.gateway.stop();
      disk.free();
      stage.gateway = await open();
    },
    sent: () => [model.requests.length, tools.calls.length, embeddings.requests.length],
    async stop() {
      disk.free();
      await stage.gateway.gateway.stop();
      await model.close();
      await tools.close();
      await embeddings.stop();
      disk.remove();
    },
  };
  return stage;
}
