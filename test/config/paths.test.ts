import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/load.ts";
import { load, originOf } from "./support.ts";

describe("paths", () => {
  test("the file is looked for in the data directory", () => {
    const { config } = load({
      flags: { data: "other" },
      files: { "/srv/other/gatehouse.yaml": "log_level: warn" },
    });
    expect(config).toMatchObject({ dataDir: "/srv/other", logLevel: "warn" });
  });

  test("a named file replaces the one in the data directory", () => {
    const files = { "/etc/gate.yaml": "log_level: warn" };
    const loaded = load({ yaml: "log_level: error", files, env: { GATEHOUSE_CONFIG: "/etc/gate.yaml" } });
    expect(loaded.config.logLevel).toBe("warn");
    expect(originOf(loaded, "log_level")).toBe("file (/etc/gate.yaml:1)");
  });

  test("a relative path in a file starts at the file's directory, in a variable at the working directory", () => {
    const files = { "/etc/gate/g.yaml": "ledger: { checkpoint_file: a/b }" };
    const flags = { config: "../etc/gate/g.yaml" };
    expect(load({ files, flags }).config.ledger.checkpointFile).toBe("/etc/gate/a/b");
    const env = { GATEHOUSE_LEDGER_CHECKPOINT_FILE: "a/b" };
    expect(load({ files, flags, env }).config.ledger.checkpointFile).toBe("/srv/a/b");
  });
});

describe("with real files", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-config-"));
    mkdirSync(join(folder, "gatehouse-data"));
    writeFileSync(
      join(folder, "gatehouse-data", "gatehouse.yaml"),
      "\ufefflog_level: warn\r\nlisten: localhost:9\r\n",
    );
    writeFileSync(join(folder, "latin.yaml"), new Uint8Array([0x61, 0x3a, 0x20, 0xe4]));
    writeFileSync(join(folder, "large.yaml"), "#".repeat(1024 * 1024 + 1));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("a byte order mark and Windows line ends are accepted", () => {
    const { config } = loadConfig({ flags: {}, env: {}, cwd: folder });
    expect(config).toMatchObject({ logLevel: "warn", listen: { host: "localhost", port: 9 } });
  });

  test.each([
    ["latin.yaml", "the file is not UTF-8 text"],
    ["large.yaml", "the file is larger than 1024 KiB"],
    ["gatehouse-data", "the file is a directory"],
    ["none.yaml", "the file does not exist"],
    ["/dev/zero", "the file is larger than 1024 KiB"],
  ])("%s: %s", (config, message) => {
    expect(() => loadConfig({ flags: { config }, env: {}, cwd: folder })).toThrow(message);
  });
});
