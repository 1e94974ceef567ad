/** A data directory that a real gateway left, and copies of it for attacks. */
import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseCheckpoints } from "../../../src/ledger/proof/checkpoint.ts";
import { parseVerifierKey } from "../../../src/ledger/proof/note.ts";
import type { TrustAnchors, VerificationFinding } from "../../../src/ledger/proof/verification.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { type DirectoryVerification, verifyDirectory } from "../../../src/ledger/verify/directory.ts";
import { tools } from "../../../src/ledger/verify/tools.ts";
import { startGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";

/** The distance between checkpoints, chosen so that some are in the middle of a tile and some are not. */
const EVERY = 100;
const AGENT = "helper";

export interface Scene {
  readonly dataDir: string;
  /** The content of `checkpoint_file`, with both workspaces' checkpoints. */
  readonly checkpoints: string;
  /** The verifier key of the workspace `default`. */
  readonly key: string;
  remove(): void;
}

/**
 * About 700 entries with texts in `default`, one text of them erased, and about 130 entries in `other`. No server
 * runs on it any more.
 */
export async function makeScene(): Promise<Scene> {
  const directory = tempDir();
  const dataDir = join(directory.path, "data");
  const file = join(directory.path, "checkpoints");
  const yaml = (more: string) => `ledger: { checkpoint_every: ${EVERY}${more} }`;
  mkdirSync(dataDir, { mode: 0o700 });
  const gateway = await startGateway({ dataDir, yaml: yaml(`, checkpoint_file: "${file}"`) });
  const { call } = gateway;
  const other = await gateway.workspace("other");
  const read = async (count: number, token?: string) => {
    const calls = Array.from({ length: count }, () => call("GET", "/v1/agents", token ? { token } : {}));
    await Promise.all(calls);
  };
  await gateway.agent(AGENT);
  await read(240);
  for (const prompt of ["What time is it?", "And now?", "Thank you."]) {
    // The stream ends when the task does.
    await call("POST", "/v1/tasks?stream=true", { body: { agent: AGENT, prompt, tools: ["time.now"] } });
    await read(120);
  }
  await read(130, other);
  const { body } = await call("GET", "/v1/ledger?action=task.dispatch&order=asc&limit=1");
  const dispatched = body.data[0].seq as number;
  const erased = await call("DELETE", `/v1/ledger/${dispatched}/payload`);
  if (erased.status !== 204) throw new Error(`the payload was not erased: ${JSON.stringify(erased.body)}`);
  await read(60);
  const key = (await call("GET", "/v1/ledger/key")).body.vkey as string;
  await gateway.stop();
  // Without this, copies that are started would each append their own continuation to one file.
  writeFileSync(join(dataDir, "gatehouse.yaml"), yaml(""));
  return { dataDir, checkpoints: readFileSync(file, "utf8"), key, remove: directory.remove };
}

export interface Copy {
  readonly dataDir: string;
  /** Path of the database. */
  readonly path: string;
  remove(): void;
}

export function copyOf(dataDir: string): Copy {
  const directory = tempDir();
  const copied = join(directory.path, "data");
  cpSync(dataDir, copied, { recursive: true });
  return { dataDir: copied, path: join(copied, "gatehouse.db"), remove: directory.remove };
}

/** Makes a scene for the surrounding tests, and a copy of it for each test. `begin` is called before each test. */
export function withCopies(begin: (copy: Copy, scene: Scene) => void): void {
  let scene: Scene;
  let copy: Copy;
  beforeAll(async () => {
    scene = await makeScene();
  });
  afterAll(() => scene.remove());
  beforeEach(() => {
    copy = copyOf(scene.dataDir);
    begin(copy, scene);
  });
  afterEach(() => copy.remove());
}

export interface Brought {
  /** A verifier key. */
  readonly key?: string;
  /** The text of a checkpoint file. */
  readonly checkpoints?: string;
  readonly workspace?: string;
}

export function verify(path: string, brought: Brought = {}): Promise<DirectoryVerification> {
  const trust: TrustAnchors = {
    keys: brought.key === undefined ? [] : [parseVerifierKey(sha256, brought.key)],
    checkpoints: brought.checkpoints === undefined ? [] : parseCheckpoints(brought.checkpoints),
  };
  return verifyDirectory({ path, trust, workspace: brought.workspace ?? null }, tools);
}

/** All findings, about the database and about each ledger. */
export function allFindings({ findings, ledgers }: DirectoryVerification): readonly VerificationFinding[] {
  return [...findings, ...ledgers.flatMap((ledger) => ledger.findings)];
}

/** Findings such as `entry_changed 300`, or just the code if no entry is named. */
export function inShort(findings: readonly VerificationFinding[]): string[] {
  return findings.map(({ code, seq }) => (seq === undefined ? code : `${code} ${seq}`));
}
