/**
 * Programs that connectors start may run as the server's own user. They still must not read its memory or
 * environment.
 */
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..", "..");
/** Root may read everything, so when the test runs as root, both sides run as an unprivileged user. */
const user = process.geteuid?.() === 0 ? { uid: 59_998, gid: 59_998 } : {};

test.skipIf(process.platform !== "linux")(
  "a process that hides its memory shows neither that nor its environment to others of its user",
  async () => {
    const place = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
    chmodSync(place, 0o755);
    const built = await Bun.build({
      entrypoints: [join(ROOT, "src", "cli", "hide-memory.ts")],
      target: "bun",
      outdir: place,
    });
    expect(built.success).toBe(true);
    const code = (hides: boolean) =>
      `const { hideMemory } = await import("${place}/hide-memory.js"); console.log(${hides} ? hideMemory() : "as it is"); await Bun.stdin.text();`;
    /** What another process of the same user reads of a running one. */
    async function readBy(hides: boolean): Promise<{ readonly said: string; readonly exits: number[] }> {
      const child = Bun.spawn([process.execPath, "-e", code(hides)], {
        ...user,
        cwd: "/",
        env: { KEY: "hunter22-long" },
        stdin: "pipe",
        stdout: "pipe",
      });
      const { value } = await child.stdout.getReader().read();
      const exits = ["environ", "maps"].map(
        (name) =>
          Bun.spawnSync(["/bin/cat", `/proc/${child.pid}/${name}`], { ...user, cwd: "/", env: {} }).exitCode,
      );
      child.stdin.end();
      await child.exited;
      return { said: new TextDecoder().decode(value).trim(), exits };
    }
    try {
      expect(await readBy(false)).toEqual({ said: "as it is", exits: [0, 0] });
      expect(await readBy(true)).toEqual({ said: "true", exits: [1, 1] });
    } finally {
      rmSync(place, { recursive: true });
    }
  },
);
