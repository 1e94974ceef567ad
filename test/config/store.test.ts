import { describe, expect, test } from "bun:test";
import { showConfig } from "../../src/config/show.ts";
import { load, problems } from "./support.ts";

const STORE = "postgres://gatehouse:p%40ss@db.example:5433/gatehouse?sslmode=require";
const EXPECTED =
  "expected a URL of the form postgres://user:password@host:port/database, in which special characters of the password are percent-encoded";

test("without a store, it is in the data directory", () => {
  expect(load({}).config.store).toBeUndefined();
});

describe("a store is named", () => {
  test("in the file", () => {
    expect(load({ yaml: `store: "${STORE}"` }).config.store).toEqual({ url: STORE });
  });

  test("by variables, or files that variables name", () => {
    const direct = "postgresql://gatehouse@/gatehouse?host=/run/postgresql".replace("gatehouse@", "");
    const env = { GATEHOUSE_STORE_FILE: "/run/store", GATEHOUSE_STORE_LISTEN: direct };
    const { store } = load({ env, files: { "/run/store": `${STORE}\n` } }).config;
    expect(store).toEqual({ url: STORE, directUrl: direct });
  });
});

test("config show reveals nothing of either URL", () => {
  const { values } = load({ env: { GATEHOUSE_STORE: STORE, GATEHOUSE_STORE_LISTEN: STORE } });
  const shown = showConfig(values).filter(({ key }) => key.startsWith("store"));
  expect(shown.map(({ value }) => value)).toEqual(["[redacted]", "[redacted]"]);
});

test.each([
  "sqlite",
  "https://user:secret@host/database",
  "postgres://user:secret@host",
  "postgres://user:secret@host/",
  "postgres://user:secret@/database",
  "postgres://user:secret@host/database/more",
  "postgres://user:secret@host/database#more",
  "postgres://user:sec ret@host/database",
  "postgres://user:secret%@host/database",
  "postgres://user:12/secret@host/database",
  "postgres://user:12?secret@host/database",
  "postgres://user:12#secret@host/database",
  "postgres://user:secret@host:port/database",
])("%p is refused, and not shown", (url) => {
  expect(problems({ env: { GATEHOUSE_STORE: url } })).toEqual([
    `store (GATEHOUSE_STORE): is [redacted]; ${EXPECTED}`,
  ]);
});

test("a direct URL without a store is refused", () => {
  expect(problems({ env: { GATEHOUSE_STORE_LISTEN: STORE } })).toEqual([
    "store_listen (GATEHOUSE_STORE_LISTEN): is set without store; set store, or remove it",
  ]);
});
