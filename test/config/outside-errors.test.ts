import { describe, expect, test } from "bun:test";
import { OperatorError } from "../../src/base/errors.ts";
import { DEFAULT_FILE, type Given, load, problems } from "./support.ts";

const ADDRESS = "HOST:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420, port 0 for any free port";

const OUTSIDE_CASES: [name: string, given: Given, ...problems: string[]][] = [
  ["a bad flag", { flags: { listen: "x" } }, `listen (--listen): is "x"; expected ${ADDRESS}`],
  ["an empty flag", { flags: { data: "" } }, "data (--data): has no value; expected a path"],
  [
    "a bad variable",
    { env: { GATEHOUSE_LIMITS_QUEUED_TASKS: "many" } },
    'limits.queued_tasks (GATEHOUSE_LIMITS_QUEUED_TASKS): is "many"; expected a whole number from 1 to 10000000',
  ],
  [
    "a bad secret",
    { env: { GATEHOUSE_ADMIN_TOKEN: "hunter2" } },
    "admin_token (GATEHOUSE_ADMIN_TOKEN): is [redacted]; expected gth_ followed by 49 letters and digits, as `gatehouse token secret` prints",
  ],
  [
    "control characters",
    { env: { GATEHOUSE_LOG_LEVEL: "\u001b[31m\u202e\u009b\n" } },
    'log_level (GATEHOUSE_LOG_LEVEL): is "\\u001b[31m\\u202e\\u009b\\n"; expected one of debug, info, warn, error',
  ],
  [
    "an unknown variable",
    { env: { GATEHOUSE_LISTN: "x" } },
    "GATEHOUSE_LISTN: is not a known variable; the nearest is GATEHOUSE_LISTEN",
  ],
  [
    "a variable for a setting that only the file can have",
    { env: { GATEHOUSE_PROVIDERS_OPENAI_API_KEY: "x" } },
    "GATEHOUSE_PROVIDERS_OPENAI_API_KEY: is not a known variable; providers can only be set in the configuration file",
  ],
  [
    "a named file that does not exist",
    { flags: { config: "no.yaml" } },
    "/srv/no.yaml (--config): the file does not exist",
  ],
  [
    "the same, by a variable",
    { env: { GATEHOUSE_CONFIG: "/no.yaml" } },
    "/no.yaml (GATEHOUSE_CONFIG): the file does not exist",
  ],
  [
    "all at once",
    {
      yaml: "listen: x\nzzz: 1",
      env: { GATEHOUSE_LOG_LEVEL: "x", GATEHOUSE_X: "1" },
      flags: { listen: "y" },
    },
    `listen (--listen): is "y"; expected ${ADDRESS}`,
    'log_level (GATEHOUSE_LOG_LEVEL): is "x"; expected one of debug, info, warn, error',
    `listen (F:1): is "x"; expected ${ADDRESS}`,
    "zzz (F:2): is not a known setting; the nearest is store",
    "GATEHOUSE_X: is not a known variable; the nearest is GATEHOUSE_URL",
  ],
];

describe("outside the file", () => {
  test.each(OUTSIDE_CASES)("%s", (_, given, ...expected) => {
    expect(problems(given)).toEqual(expected);
  });
});

describe("the error", () => {
  const thrown = (given: Given): unknown => {
    try {
      return load(given);
    } catch (cause) {
      return cause;
    }
  };

  test("about one problem is a sentence, with exit code 2 and the next step", () => {
    const error = thrown({ flags: { data: "" } });
    expect(error).toBeInstanceOf(OperatorError);
    expect(error).toMatchObject({
      message: "The configuration is not valid. data (--data): has no value; expected a path",
      hint: "Correct this and run `gatehouse config check`.",
      exitCode: 2,
    });
  });

  test("about several lists the first 50", () => {
    const yaml = Array.from({ length: 60 }, (_, index) => `key_${index}: 1`).join("\n");
    const error = thrown({ yaml });
    const lines = error instanceof OperatorError ? error.message.split("\n") : [];
    expect(lines[0]).toBe("The configuration has 60 problems:");
    expect(lines[1]).toStartWith(`  key_0 (${DEFAULT_FILE}:1): is not a known setting`);
    expect(lines.slice(51)).toEqual(["  and 10 more"]);
  });
});
