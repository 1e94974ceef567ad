import { describe, expect, test } from "bun:test";
import { showConfig } from "../../src/config/show.ts";
import { type Given, load, problems } from "./support.ts";

const MASTER_KEY = "expected 32 bytes in base64, base64url or hex, as `openssl rand -base64 32` prints";
const LIST = "a list of at most 64 IP addresses or ranges, such as 169.254.169.254 or fe80::/10";
const RANGE = "an IP address or a range such as 169.254.169.254 or fe80::/10";
const key = Buffer.from(Array.from({ length: 32 }, (_, index) => index * 8));

const REFUSED: [name: string, given: Given, ...problems: string[]][] = [
  ...(
    [
      ["true", "write operator, or all if every workspace may start programs on this machine"],
      ["1", "write operator, or all if every workspace may start programs on this machine"],
      ["false", "write none"],
      ["0", "write none"],
    ] as const
  ).flatMap(([text, advice]): [string, Given, string][] => [
    [
      `connectors.stdio as ${text}, which an earlier version took`,
      { yaml: `connectors: { stdio: ${text} }` },
      `connectors.stdio (F:1): is ${text}, which is no longer accepted; ${advice}`,
    ],
    [
      `connectors.stdio as ${text} in a variable`,
      { env: { GATEHOUSE_CONNECTORS_STDIO: text } },
      `connectors.stdio (GATEHOUSE_CONNECTORS_STDIO): is ${text}, which is no longer accepted; ${advice}`,
    ],
  ]),
  [
    "an empty value for who may start programs",
    { yaml: "connectors: { stdio: }" },
    "connectors.stdio (F:1): has no value; expected one of operator, all, none",
  ],
  [
    "an unknown value for who may start programs",
    { env: { GATEHOUSE_CONNECTORS_STDIO: "off" } },
    'connectors.stdio (GATEHOUSE_CONNECTORS_STDIO): is "off"; expected one of operator, all, none',
  ],
  [
    "a user that no system has",
    { yaml: "connectors: { stdio_user: 'a b' }" },
    'connectors.stdio_user (F:1): is "a b"; expected a user of this machine, by name or number',
  ],
  [
    "true, given as text",
    { yaml: "listen: true" },
    "listen (F:1): is true; expected HOST:PORT such as 127.0.0.1:8420, 0.0.0.0:8420 or [::1]:8420, port 0 for any free port, in quotes",
  ],
  [
    "a timeout of zero",
    { yaml: "connectors: { timeout_ms: 0 }" },
    "connectors.timeout_ms (F:1): is 0; expected a whole number from 1 to 3600000",
  ],
  [
    "one address that is not a list",
    { yaml: "connectors: { allow_addresses: 10.0.0.1 }" },
    `connectors.allow_addresses (F:1): is "10.0.0.1"; expected ${LIST}`,
  ],
  [
    "entries that are not addresses",
    {
      yaml: "connectors:\n  allow_addresses: [169.254.1, 10.0.0.0/33, fe80::1%eth0, 0x7f.0.0.1, 5, '::/129', 10.0.0.0/08]",
    },
    ...[
      '"169.254.1"',
      '"10.0.0.0/33"',
      '"fe80::1%eth0"',
      '"0x7f.0.0.1"',
      null,
      '"::/129"',
      '"10.0.0.0/08"',
    ].map((shown, index) =>
      shown === null
        ? `connectors.allow_addresses[${index}] (F:2): is 5; expected ${RANGE}, in quotes`
        : `connectors.allow_addresses[${index}] (F:2): is ${shown}; expected ${RANGE}`,
    ),
  ],
  [
    "the same, in a variable",
    { env: { GATEHOUSE_CONNECTORS_ALLOW_ADDRESSES: "169.254.169.254,metadata" } },
    `connectors.allow_addresses (GATEHOUSE_CONNECTORS_ALLOW_ADDRESSES): is "169.254.169.254,metadata"; expected ${LIST}`,
  ],
  [
    "too many addresses",
    { yaml: `connectors: { allow_addresses: [${Array.from({ length: 65 }, () => "10.0.0.1").join()}] }` },
    `connectors.allow_addresses (F:1): has 65 entries; expected ${LIST}`,
  ],
  ...[
    "x",
    "0123456789abcdef",
    key.subarray(1).toString("base64"),
    `${key.toString("base64")}=`,
    `${key.toString("base64url").slice(0, -1)}B`,
    key.toString("hex").slice(1),
    `+_${key.toString("base64").slice(2)}`,
  ].map((text): [string, Given, string] => [
    `the master key ${text}`,
    { env: { GATEHOUSE_MASTER_KEY: text } },
    `master_key (GATEHOUSE_MASTER_KEY): is [redacted]; ${MASTER_KEY}`,
  ]),
];

describe("refused", () => {
  test.each(REFUSED)("%s", (_, given, ...expected) => {
    expect(problems(given)).toEqual(expected);
  });
});

describe("accepted", () => {
  test.each([
    ["base64", key.toString("base64")],
    ["base64 without padding", key.toString("base64").slice(0, -1)],
    ["base64url", key.toString("base64url")],
    ["hex", key.toString("hex")],
    ["HEX", key.toString("hex").toUpperCase()],
  ])("a master key in %s", (_, text) => {
    expect(load({ env: { GATEHOUSE_MASTER_KEY: text } }).config.masterKey).toBe(text);
    const fromFile = load({
      env: { GATEHOUSE_MASTER_KEY_FILE: "/run/key" },
      files: { "/run/key": `${text}\n` },
    });
    expect(fromFile.config.masterKey).toBe(text);
  });

  test.each(["operator", "all", "none"] as const)("connectors.stdio as %s", (rule) => {
    const env = { GATEHOUSE_CONNECTORS_STDIO: rule };
    expect(load({ env }).config.connectors.stdio).toBe(rule);
    expect(load({ yaml: `connectors: { stdio: ${rule} }` }).config.connectors.stdio).toBe(rule);
  });

  test.each(["mcp", "www-data", "1000"])("connectors.stdio_user as %s", (user) => {
    const yaml = `connectors: { stdio_user: "${user}" }`;
    expect(load({ yaml }).config.connectors.stdioUser).toBe(user);
  });

  test("addresses and ranges, of both families", () => {
    const yaml =
      'connectors: { stdio: none, allow_addresses: [169.254.169.254, "fe80::/10", "::ffff:10.0.0.1"] }';
    const { config, values } = load({ yaml });
    expect(config.connectors).toEqual({
      timeoutMs: 60_000,
      stdio: "none",
      allowAddresses: ["169.254.169.254", "fe80::/10", "::ffff:10.0.0.1"],
    });
    const shown = new Map(showConfig(values).map((row) => [row.key, row.value]));
    expect(shown.get("connectors.stdio")).toBe("none");
    expect(shown.get("connectors.allow_addresses")).toEqual(config.connectors.allowAddresses);
  });

  test("no addresses", () => {
    expect(load({ yaml: "connectors: { allow_addresses: [] }" }).config.connectors.allowAddresses).toEqual(
      [],
    );
  });
});
