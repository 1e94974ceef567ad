import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { validator } from "../base/schema.ts";

/** The address of the running server, and the secret by which it recognises the command line on the same machine. */
export interface Runtime {
  readonly pid: number;
  readonly url: string;
  readonly secret: string;
}

const FILE = "server.json";
const runtime = validator(
  Type.Object(
    { pid: Type.Integer(), url: Type.String(), secret: Type.String() },
    { additionalProperties: false },
  ),
);

/** Writes the file, readable only by its owner. It is replaced as a whole, so no reader sees half a file. */
export function writeRuntime(directory: string, value: Runtime): void {
  const path = join(directory, FILE);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  renameSync(draft, path);
}

/** Reads the file that the running server wrote. Null if there is no valid file. */
export function readRuntime(directory: string): Runtime | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(directory, FILE), "utf8"));
    return runtime.is(value) ? value : null;
  } catch {
    return null;
  }
}

export function removeRuntime(directory: string): void {
  rmSync(join(directory, FILE), { force: true });
}
