// biome-ignore-all lint/suspicious/noTemplateCurlyInString: configuration files contain them.
import { describe, expect, test } from "bun:test";
import { type Given, load, originOf } from "./support.ts";

const name = (text: string, given: Given = {}) =>
  load({
    ...given,
    yaml: `tiers: { 1: { name: "${text}", models: [builtin/extractive] } }`,
  }).config.tiers.get(1)?.name;

describe("${NAME} in the file", () => {
  const env = {
    WORD: "red",
    OTHER: "blue",
    EMPTY: "",
    NESTED: "${WORD}",
    _x1: "low",
    SHARED_FILE: "/s",
    LONE: "a",
  };
  test.each([
    ["${WORD}", "red"],
    ["a ${WORD} b ${OTHER}${WORD}", "a red b bluered"],
    ["x${EMPTY}y", "xy"],
    ["${NESTED}", "${WORD}"],
    ["${_x1}", "low"],
    ["$${WORD}", "${WORD}"],
    ["$$${WORD}", "$${WORD}"],
    ["$WORD $ {WORD} 5$", "$WORD $ {WORD} 5$"],
    ["${SHARED}", "from a file"],
    ["${SHARED_FILE}", "/s"],
    ["$&${LONE}$1", "$&a$1"],
  ])("%s is %s", (text, expected) => {
    expect(name(text, { env, files: { "/s": "  from a file\n\n" } })).toBe(expected);
  });

  test.each([
    ["${MISSING}", "needs the environment variable MISSING, which is not set (and neither is MISSING_FILE)"],
    ["${GONE}", "needs the environment variable GONE, but the file that GONE_FILE names does not exist"],
    ["${BLANK}", "needs the environment variable BLANK, but the file that BLANK_FILE names is empty"],
    [
      "${LARGE}",
      "needs the environment variable LARGE, but the file that LARGE_FILE names is larger than 64 KiB",
    ],
    ["${", "has a ${…} without a variable's name; write ${NAME}, or $${ for a literal ${"],
    ["${}", "has a ${…} without a variable's name; write ${NAME}, or $${ for a literal ${"],
    ["${A:-b}", "has a ${…} without a variable's name; write ${NAME}, or $${ for a literal ${"],
    ["${1A}", "has a ${…} without a variable's name; write ${NAME}, or $${ for a literal ${"],
  ])("%s names the setting and says: %s", (text, message) => {
    const files = { "/blank": " \n", "/large": "x".repeat(65 * 1024) };
    const paths = { GONE_FILE: "/gone", BLANK_FILE: "/blank", LARGE_FILE: "/large" };
    expect(() => name(text, { env: { ...env, ...paths }, files })).toThrow(
      `tiers.1.name (/srv/gatehouse-data/gatehouse.yaml:1): ${message}`,
    );
  });

  test("a number may come from a variable", () => {
    const yaml = 'limits: { queued_tasks: "${QUEUE}" }\nmodels: { a/b: { input: "${IN}", output: 0 } }';
    const { config } = load({ yaml, env: { QUEUE: "42", IN: "0.25" } });
    expect(config.limits.queuedTasks).toBe(42);
    expect(config.prices.get("a/b")?.input).toBe(250_000);
    expect(() => load({ yaml, env: { QUEUE: "4x", IN: "" } })).toThrow(
      'limits.queued_tasks (/srv/gatehouse-data/gatehouse.yaml:1): is "${QUEUE}"; expected a whole number',
    );
  });

  test("models of a tier may come from variables", () => {
    const yaml = 'tiers: { 1: { models: ["builtin/${NAME}"] } }';
    expect(load({ yaml, env: { NAME: "extractive" } }).config.tiers.get(1)?.models).toEqual([
      "builtin/extractive",
    ]);
    expect(() => load({ yaml })).toThrow("tiers.1.models[0] (/srv/gatehouse-data/gatehouse.yaml:1): needs");
  });

  test("keys and comments are left alone", () => {
    expect(() => load({ yaml: "# ${MISSING}\n" })).not.toThrow();
    expect(() => load({ yaml: "${WORD}: 1", env })).toThrow('"${WORD}" (');
  });
});

describe("NAME_FILE for the program's own variables", () => {
  test("is read if NAME is unset, and trimmed", () => {
    const loaded = load({
      env: { GATEHOUSE_LOG_LEVEL_FILE: "/run/level" },
      files: { "/run/level": " debug\r\n" },
    });
    expect(loaded.config.logLevel).toBe("debug");
    expect(originOf(loaded, "log_level")).toBe("environment (GATEHOUSE_LOG_LEVEL_FILE)");
  });

  test("is ignored if NAME is set", () => {
    const env = { GATEHOUSE_LOG_LEVEL: "warn", GATEHOUSE_LOG_LEVEL_FILE: "/none" };
    expect(load({ env }).config.logLevel).toBe("warn");
  });

  test("a variable whose own name ends in _FILE is a separate variable", () => {
    expect(load({ env: { GATEHOUSE_LEDGER_CHECKPOINT_FILE: "/c" } }).config.ledger.checkpointFile).toBe("/c");
  });

  test("does not repeat the path, which may be the secret itself, put there by mistake", () => {
    expect(() => load({ env: { GATEHOUSE_ADMIN_TOKEN_FILE: "gth_secret" } })).toThrow(
      /^The configuration is not valid\. admin_token \(GATEHOUSE_ADMIN_TOKEN\): the file that GATEHOUSE_ADMIN_TOKEN_FILE names does not exist$/,
    );
  });
});

describe("GATEHOUSE_ variables that are not settings", () => {
  test.each([
    ["GATEHOUSE_TOKEN", "x"],
    ["GATEHOUSE_TOKEN_FILE", "/x"],
    ["GATEHOUSE_URL", "x"],
    // A Kubernetes service called gatehouse, or gatehouse-db, sets these in every pod of its namespace.
    ["GATEHOUSE_SERVICE_HOST", "10.0.0.1"],
    ["GATEHOUSE_SERVICE_PORT_HTTP", "8420"],
    ["GATEHOUSE_PORT", "tcp://10.0.0.1:8420"],
    ["GATEHOUSE_PORT_8420_TCP_ADDR", "10.0.0.1"],
    ["GATEHOUSE_DB_SERVICE_HOST", "10.0.0.1"],
    ["NOT_GATEHOUSE_X", "x"],
  ])("%s is ignored", (variable, value) => {
    expect(() => load({ env: { [variable]: value } })).not.toThrow();
  });

  test("a variable that the file uses is known", () => {
    const yaml = 'tiers: { 1: { name: "${GATEHOUSE_MY_NAME}", models: [builtin/extractive] } }';
    expect(load({ yaml, env: { GATEHOUSE_MY_NAME: "mine" } }).config.tiers.get(1)?.name).toBe("mine");
    expect(() => load({ env: { GATEHOUSE_MY_NAME: "mine" } })).toThrow(
      "GATEHOUSE_MY_NAME: is not a known variable",
    );
  });

  test("a port that is meant as the setting is not ignored", () => {
    expect(() => load({ env: { GATEHOUSE_PORT: "8420" } })).toThrow(
      "GATEHOUSE_PORT: is not a known variable",
    );
  });
});
