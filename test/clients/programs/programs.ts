import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where the programs are installed, as a separate project. */
export const PROGRAMS_HOME = join(import.meta.dir, "..", "..", "..", ".tools", "client-programs");

function program(name: string, spec: string, path: string) {
  return { name, spec, path: join(PROGRAMS_HOME, "node_modules", name, path) };
}

/** Builds for x64 with glibc, like CI's machines. */
export const CLAUDE_CODE = program("claude-code", "@anthropic-ai/claude-code-linux-x64@2.1.330", "claude");
export const CODEX = program(
  "codex",
  "@openai/codex@0.169.0-linux-x64",
  "vendor/x86_64-unknown-linux-musl/bin/codex",
);
export const CLIENT_PROGRAMS = [CLAUDE_CODE, CODEX] as const;

export interface ProgramRun {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in an empty home directory, without input and with no other variables than these. */
export async function runProgram(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<ProgramRun> {
  const home = mkdtempSync(join(tmpdir(), "gatehouse-client-"));
  try {
    const cwd = join(home, "work");
    mkdirSync(cwd);
    const child = Bun.spawn([...command], {
      cwd,
      env: { PATH: process.env.PATH ?? "", HOME: home, TERM: "dumb", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: 100_000,
      killSignal: "SIGKILL",
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { exitCode: child.exitCode, stdout, stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
