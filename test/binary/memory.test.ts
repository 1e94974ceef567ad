/** The built program hides its memory from other processes of its user, as the sources do. */
import { expect, test } from "bun:test";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY } from "../support/process.ts";

const user = process.geteuid?.() === 0 ? { uid: 59_998, gid: 59_998 } : {};

test.skipIf(process.platform !== "linux")(
  "a running server's environment cannot be read by another process of its user",
  async () => {
    const data = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
    if (user.uid !== undefined) chownSync(data, user.uid, user.gid);
    const server = Bun.spawn([...BINARY, "serve", "--data", data, "--listen", "127.0.0.1:0"], {
      ...user,
      cwd: "/",
      env: { GATEHOUSE_ADMIN_TOKEN: `gth_${"a".repeat(49)}` },
      stderr: "pipe",
    });
    try {
      let logged = "";
      for await (const chunk of server.stderr) {
        logged += new TextDecoder().decode(chunk);
        if (logged.includes("gatehouse is ready")) break;
      }
      const reader = Bun.spawnSync(["/bin/cat", `/proc/${server.pid}/environ`], {
        ...user,
        cwd: "/",
        env: {},
      });
      expect([reader.exitCode, reader.stdout.toString()]).toEqual([1, ""]);
      expect(logged).not.toContain("can read this server's memory");
    } finally {
      server.kill("SIGTERM");
      await server.exited;
      rmSync(data, { recursive: true, force: true });
    }
  },
  60_000,
);
