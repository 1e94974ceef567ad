import { readFileSync } from "node:fs";
import { runAs } from "./run-as.ts";

/** The kinds of System V objects: names in `/proc/sysvipc`, and the options of ipcrm(1) that remove one by its id. */
const KINDS = { shm: "-m", msg: "-q", sem: "-s" } as const;
type Kind = keyof typeof KINDS;

const REMOVER_MS = 5_000;

interface IpcObject {
  readonly kind: Kind;
  readonly id: string;
  readonly creator: number;
}

/**
 * What programs leave behind in the kernel, where it outlives their processes: shared memory, message queues and
 * semaphores of System V, and keys in a user's keyring.
 */
export class KernelObjects {
  readonly #proc: string;

  constructor(proc = "/proc") {
    this.#proc = proc;
  }

  /** The users that have any. */
  owners(): ReadonlySet<number> {
    return new Set([...this.#ipcObjects().map(({ creator }) => creator), ...this.#keyOwners()]);
  }

  /**
   * Removes a user's System V objects. MUST be called only for a program's user, when none of its processes runs.
   * @throws Error if anything remains, such as keys, which nobody else can remove
   */
  async removeOf(uid: number): Promise<void> {
    const objects = this.#ipcObjects().filter(({ creator }) => creator === uid);
    const args = objects.flatMap(({ kind, id }) => [KINDS[kind], id]);
    // Done as their creator: in a container, root may lack the capability.
    if (args.length > 0) await runAs({ uid, gid: uid }, ["ipcrm", ...args], REMOVER_MS);
    if (this.owners().has(uid))
      throw new Error(`kernel objects of user ${uid} remain (see ipcs and /proc/key-users)`);
  }

  /** An object's owner can give it to another user, but its creator stays, and may always remove it. */
  #ipcObjects(): readonly IpcObject[] {
    return (Object.keys(KINDS) as Kind[]).flatMap((kind) => {
      const [header = "", ...lines] = this.#lines(`sysvipc/${kind}`);
      const creatorAt = wordsOf(header).indexOf("cuid");
      return lines.map((line) => {
        const words = wordsOf(line);
        return { kind, id: words[1] ?? "", creator: Number(words[creatorAt]) };
      });
    });
  }

  /** Users with keys, as `uid: usage keys/…` (proc_key-users(5)). Most users have none. */
  #keyOwners(): readonly number[] {
    return this.#lines("key-users").map((line) => Number.parseInt(line, 10));
  }

  /** None on a system without such a file. */
  #lines(name: string): string[] {
    let text: string;
    try {
      text = readFileSync(`${this.#proc}/${name}`, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
    return text.split("\n").filter((line) => line.trim() !== "");
  }
}

function wordsOf(line: string): string[] {
  return line.trim().split(/\s+/);
}
