import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { OperatorError } from "../../src/base/errors.ts";
import { open, seal } from "../../src/store/sealed-value.ts";
import { openSecretKey, requireMasterKey } from "../../src/store/secret-key.ts";

const root = mkdtempSync(join(tmpdir(), "gatehouse-key-"));
let dataDir: string;
let count = 0;

beforeEach(() => {
  dataDir = join(root, String(count++));
  mkdirSync(dataDir);
});

afterAll(() => rmSync(root, { recursive: true }));

const path = () => join(dataDir, "secrets.key");
const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));

function thrown(masterKey?: string): OperatorError {
  try {
    openSecretKey({ masterKey, dataDir });
  } catch (error) {
    if (error instanceof OperatorError) return error;
  }
  throw new Error("no OperatorError");
}

describe("refused", () => {
  test("a missing master key, if nodes share it", () => {
    expect(() => requireMasterKey(undefined)).toThrow(
      expect.objectContaining({
        message: "the setting master_key is missing: nodes that share a store need the same one",
        hint: expect.stringContaining("GATEHOUSE_MASTER_KEY"),
        exitCode: 2,
      }),
    );
  });

  test.each([
    "",
    "x",
    bytes.subarray(1).toString("base64"),
    bytes.toString("hex").slice(2),
    `${bytes.toString("hex")}00`,
  ])("a master key %j", (text) => {
    expect(thrown(text)).toMatchObject({
      message: "master_key is not 32 bytes in base64, base64url or hex",
      hint: "create one with `openssl rand -base64 32`",
      exitCode: 2,
    });
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test.each([0o644, 0o640, 0o604, 0o602, 0o660])("a key file of mode %o", (mode) => {
    writeFileSync(path(), `${bytes.toString("base64")}\n`);
    chmodSync(path(), mode);
    const error = thrown();
    expect(error.message).toBe(
      `the key file ${path()} is accessible to other users (mode 0${mode.toString(8)})`,
    );
    expect(error.hint).toBe(`run chmod 600 ${path()}`);
  });

  test.each(["", "\n", "short", `${bytes.toString("base64")} x`, "A".repeat(300), bytes.toString("latin1")])(
    "a key file that contains %j, which stays unchanged",
    (content) => {
      writeFileSync(path(), content, { mode: 0o600, encoding: "latin1" });
      expect(thrown().message).toBe(`the key file ${path()} does not contain a key`);
      expect(readFileSync(path(), "latin1")).toBe(content);
    },
  );

  test("something that is not a file", () => {
    mkdirSync(path(), { mode: 0o700 });
    expect(thrown().message).toBe(`the key file ${path()} is not a file`);
  });

  test("a missing directory", () => {
    rmSync(dataDir, { recursive: true });
    expect(thrown().message).toBe(`the key file ${path()} cannot be created (ENOENT)`);
  });
});

describe("a master key", () => {
  const hex = openSecretKey({ masterKey: bytes.toString("hex"), dataDir: root });
  const sealed = seal(hex, "secret", "here");

  test.each([
    ["hex", bytes.toString("hex").toUpperCase()],
    ["base64", bytes.toString("base64")],
    ["base64 without padding", bytes.toString("base64").replace("=", "")],
    ["base64url", bytes.toString("base64url")],
  ])("is the same in %s", (_, masterKey) => {
    const key = openSecretKey({ masterKey, dataDir });
    expect(open(key, sealed, "here").toString()).toBe("secret");
    expect(key.from).toBe("setting");
  });

  test("replaces the file, which is neither read nor created", () => {
    openSecretKey({ masterKey: bytes.toString("hex"), dataDir });
    expect(existsSync(path())).toBe(false);
    writeFileSync(path(), "no key");
    expect(openSecretKey({ masterKey: bytes.toString("hex"), dataDir }).id).toEqual(hex.id);
  });

  test("is never printed", () => {
    const shown = `${inspect(hex, { depth: 9, showHidden: true })}${JSON.stringify(hex)}`;
    for (const encoding of ["hex", "base64", "base64url", "latin1"] as const) {
      expect(shown).not.toContain(bytes.toString(encoding).slice(0, 20));
    }
    expect(Buffer.from(bytes).includes(Buffer.from(hex.id))).toBe(false);
  });
});

describe("the key file", () => {
  test("is created once, for its owner only, and read from then on", () => {
    const first = openSecretKey({ masterKey: undefined, dataDir });
    const content = readFileSync(path(), "utf8");
    expect(content).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(["secrets.key"]);
    const again = openSecretKey({ masterKey: undefined, dataDir });
    expect(readFileSync(path(), "utf8")).toBe(content);
    expect(open(again, seal(first, "secret", "here"), "here").toString()).toBe("secret");
    expect(again.from).toBe("file");
  });

  test("contains what the random source gave", () => {
    const random = (target: Uint8Array) => target.set(bytes);
    const made = openSecretKey({ masterKey: undefined, dataDir, random });
    expect(readFileSync(path(), "utf8").trim()).toBe(bytes.toString("base64"));
    expect(made.id).toEqual(openSecretKey({ masterKey: bytes.toString("hex"), dataDir }).id);
  });

  test("is created again if a process died before it was complete", () => {
    writeFileSync(`${path()}.new`, "half a k", { mode: 0o644 });
    openSecretKey({ masterKey: undefined, dataDir });
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(["secrets.key"]);
  });

  test("may be written by hand: hex, with spaces around it", () => {
    writeFileSync(path(), `  ${bytes.toString("hex")}\r\n`, { mode: 0o400 });
    const expected = openSecretKey({ masterKey: bytes.toString("hex"), dataDir });
    expect(openSecretKey({ masterKey: undefined, dataDir }).id).toEqual(expected.id);
  });

  test("differs from one data directory to the next", () => {
    const first = openSecretKey({ masterKey: undefined, dataDir });
    const other = join(dataDir, "other");
    mkdirSync(other);
    expect(openSecretKey({ masterKey: undefined, dataDir: other }).id).not.toEqual(first.id);
  });
});
