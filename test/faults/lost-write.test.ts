/** A disk that does not confirm a write: nobody is told that it succeeded, and only a new start continues. */
import { expect, spyOn, test } from "bun:test";
import { WatchedFile } from "../../src/store/sqlite/watched-file.ts";
import { startGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";

test("refuses all calls, and resumes after a new start", async () => {
  const { path: dataDir, remove } = tempDir();
  const before = await startGateway({ dataDir });
  await before.agent("first");
  const disk = spyOn(WatchedFile.prototype, "sync").mockRejectedValue(new Error("EIO: i/o error, fdatasync"));
  const body = { name: "second", owner: "o", memory_scope: "/" };
  const refused = await before.call("POST", "/v1/agents", { body });
  expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
  disk.mockRestore();
  expect((await before.call("POST", "/v1/agents", { body })).status).toBe(503);
  expect(await before.gateway.mustRestart).toBe("not_on_disk");
  await before.stop();

  const after = await startGateway({ dataDir });
  expect((await after.call("GET", "/v1/agents/first")).status).toBe(200);
  const again = await after.call("POST", "/v1/agents", { body });
  // Whether the system lost the write or not, the row and its entry are both there, or both missing.
  const { data } = (await after.call("GET", "/v1/ledger?action=agent.create")).body;
  expect(data.filter(({ outcome }: { outcome: string }) => outcome === "succeeded")).toHaveLength(2);
  expect([201, 409]).toContain(again.status);
  await after.stop();
  remove();
});
