import { join } from "node:path";
import { Unzip, UnzipInflate, UnzipPassThrough, unzipSync } from "fflate";

/**
 * What a program reads from an archive: each file's name and the SHA-256 of its content, in order. Null if the
 * program refuses the archive.
 */
export type Reading = readonly (readonly [name: string, sha256: string])[] | null;

export interface ZipReaderProgram {
  readonly name: string;
  /** Reads many archives at once, because some programs take a second to start. */
  read(paths: readonly string[]): Promise<readonly Reading[]>;
}

const PYTHON = `
import hashlib, json, sys, zipfile
def read(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return [[i.filename, hashlib.sha256(archive.read(i)).hexdigest()] for i in archive.infolist()]
    except Exception:
        return None
for path in sys.argv[1:]:
    print(json.dumps(read(path)))
`;

/** Programs that the tests in this folder need. A Java that can run a source file includes its compiler. */
export const PROGRAMS = { infoZip: "unzip", python: "python3", java: "java", compiler: "javac" } as const;

async function linesOf(command: readonly string[]): Promise<Reading[]> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const lines = (await new Response(child.stdout).text()).trim().split("\n");
  if ((await child.exited) !== 0) throw new Error(`${command[0]} ended with ${child.exitCode}`);
  return lines.map((line) => JSON.parse(line));
}

async function outputOf(command: readonly string[]): Promise<Uint8Array | null> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const output = await new Response(child.stdout).bytes();
  return (await child.exited) === 0 ? output : null;
}

async function infoZip(program: string, path: string): Promise<Reading> {
  const listed = await outputOf([program, "-Z1", path]);
  if (listed === null) return null;
  const reading: [string, string][] = [];
  for (const name of Buffer.from(listed).toString().trim().split("\n")) {
    // The name is a pattern, in which a bracket must itself be bracketed to be literal.
    const content = await outputOf([program, "-p", path, name.replace(/[[*?]/g, "[$&]")]);
    if (content === null) return null;
    reading.push([name, sha256(content)]);
  }
  return reading;
}

function sha256(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Trusts the directory. */
function fflateWhole(bytes: Uint8Array): Reading {
  try {
    return Object.entries(unzipSync(bytes)).map(([name, content]) => [name, sha256(content)]);
  } catch {
    return null;
  }
}

/** Trusts the headers before the files, and goes from one to the next. */
function fflateStream(bytes: Uint8Array): Reading {
  const reading: [string, string][] = [];
  try {
    const unzip = new Unzip((file) => {
      const parts: Uint8Array[] = [];
      file.ondata = (error, chunk, isLast) => {
        if (error) throw error;
        parts.push(chunk);
        if (isLast) reading.push([file.name, sha256(Buffer.concat(parts))]);
      };
      file.start();
    });
    unzip.register(UnzipInflate);
    unzip.register(UnzipPassThrough);
    unzip.push(bytes, true);
    return reading;
  } catch {
    return null;
  }
}

function inProcess(name: string, read: (bytes: Uint8Array) => Reading): ZipReaderProgram {
  return {
    name,
    read: (paths) => Promise.all(paths.map(async (path) => read(await Bun.file(path).bytes()))),
  };
}

export const READERS: readonly ZipReaderProgram[] = [
  inProcess("fflate", fflateWhole),
  inProcess("fflate, streaming", fflateStream),
  {
    name: "Info-ZIP",
    read: (paths) => Promise.all(paths.map((path) => infoZip(PROGRAMS.infoZip, path))),
  },
  {
    name: "Python",
    read: (paths) => linesOf([PROGRAMS.python, "-c", PYTHON, ...paths]),
  },
  ...["directory", "stream"].map((way) => ({
    name: `Java, ${way}`,
    read: (paths: readonly string[]) =>
      linesOf([PROGRAMS.java, join(import.meta.dir, "ReadZip.java"), way, ...paths]),
  })),
];
