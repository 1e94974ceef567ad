import { join } from "node:path";
import { tempDir } from "../../support/process.ts";

/** Where Debian's package golang-golang-x-mod-dev installs its sources. */
const GOPATH = "/usr/share/gocode";
/** The part of the package that main.go needs. */
export const GO_SOURCES = join(GOPATH, "src", "golang.org", "x", "mod", "sumdb", "tlog");

export interface Inclusion {
  /** Base64 of the hashed bytes. */
  readonly entry: string;
  /** Counted from 0. */
  readonly index: number;
  readonly checkpoint: string;
  /** Base64 of each hash, as in all proofs here. */
  readonly proof: readonly string[];
}

export interface Consistency {
  readonly older: string;
  readonly newer: string;
  readonly proof: readonly string[];
}

/** `unsigned` is a note that no known key has signed. */
export type Verdict = "good" | "unsigned" | "refused";

export interface Question {
  readonly check?: {
    readonly verifierKeys: readonly string[];
    readonly notes?: readonly string[];
    readonly inclusions?: readonly Inclusion[];
    readonly consistencies?: readonly Consistency[];
  };
  readonly make?: {
    readonly origin: string;
    /** Base64 of each entry's hashed bytes. */
    readonly entries: readonly string[];
    readonly sizes: readonly number[];
    readonly inclusions: readonly (readonly [index: number, size: number])[];
    readonly consistencies: readonly (readonly [from: number, to: number])[];
  };
}

/** The counterpart of `answer` in main.go. An empty list is null. */
export interface Answer {
  readonly check: {
    readonly notes: readonly Verdict[] | null;
    readonly inclusions: readonly Verdict[] | null;
    readonly consistencies: readonly Verdict[] | null;
  };
  readonly make: {
    readonly verifierKey: string;
    readonly checkpoints: readonly string[] | null;
    readonly inclusions: readonly (readonly string[] | null)[] | null;
    readonly consistencies: readonly (readonly string[] | null)[] | null;
  };
}

export interface GoProgram {
  ask(question: Question): Promise<Answer>;
  remove(): void;
}

/**
 * Builds main.go without network access and without a module.
 * @throws Error if Go or the package that it needs is missing; `scripts/test` says what to install
 */
export async function buildGoProgram(): Promise<GoProgram> {
  const directory = tempDir();
  const program = join(directory.path, "check");
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: directory.path,
    GOPATH,
    GOCACHE: join(directory.path, "cache"),
    GO111MODULE: "off",
    GOFLAGS: "",
    GOPROXY: "off",
    GOTOOLCHAIN: "local",
    CGO_ENABLED: "0",
  };
  await run(["go", "build", "-o", program, join(import.meta.dir, "main.go")], "", env);
  return {
    ask: async (question) => JSON.parse(await run([program], JSON.stringify(question), env)),
    remove: directory.remove,
  };
}

async function run(command: string[], input: string, env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(command, { stdin: Buffer.from(input), stdout: "pipe", stderr: "pipe", env });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}
