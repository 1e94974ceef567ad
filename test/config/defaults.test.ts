import { describe, expect, test } from "bun:test";
import type { ProviderConfig } from "../../src/config/config.ts";
import { defaultModels, withDefaultModels } from "../../src/config/defaults.ts";
import { load, originOf, sources } from "./support.ts";

const routes = (
  env: Record<string, string>,
  ollamaModels: string[] = [],
  configured?: ReadonlyMap<string, ProviderConfig>,
) => {
  const { tiers } = defaultModels({ env, ollamaModels }, configured);
  return [...tiers.values()].map(({ models }) => models.join(" "));
};

describe("the default routes", () => {
  const all = { OPENAI_API_KEY: "o", ANTHROPIC_API_KEY: "a", GEMINI_API_KEY: "g" };
  test.each([
    ["nothing", {}, [], "builtin/extractive", "builtin/extractive"],
    ["an empty key", { OPENAI_API_KEY: "" }, [], "builtin/extractive", "builtin/extractive"],
    [
      "OpenAI",
      { OPENAI_API_KEY: "o" },
      [],
      "openai/gpt-5-nano builtin/extractive",
      "openai/gpt-5-mini builtin/extractive",
    ],
    [
      "Anthropic",
      { ANTHROPIC_API_KEY: "a" },
      [],
      "anthropic/claude-haiku-4-5 builtin/extractive",
      "anthropic/claude-sonnet-4-5 builtin/extractive",
    ],
    [
      "Google",
      { GEMINI_API_KEY: "g" },
      [],
      "google/gemini-2.5-flash-lite builtin/extractive",
      "google/gemini-2.5-flash builtin/extractive",
    ],
    [
      "all of them",
      all,
      ["llama3.2:latest"],
      "openai/gpt-5-nano anthropic/claude-haiku-4-5 google/gemini-2.5-flash-lite ollama/llama3.2:latest builtin/extractive",
      "openai/gpt-5-mini anthropic/claude-sonnet-4-5 google/gemini-2.5-flash ollama/llama3.2:latest builtin/extractive",
    ],
    [
      "an Ollama, without its embedding models and invalid names",
      {},
      ["nomic-embed-text:latest", "hf.co/org/qwen3:8b", "all-minilm", "a b", ""],
      "ollama/hf.co/org/qwen3:8b builtin/extractive",
      "ollama/hf.co/org/qwen3:8b builtin/extractive",
    ],
  ])("with %s", (_, env, ollamaModels, economy, standard) => {
    expect(routes(env, ollamaModels)).toEqual([economy, standard]);
  });

  test("contain no more than eight of an Ollama's models", () => {
    const models = Array.from({ length: 20 }, (_, index) => `m${index}`);
    expect(routes({}, models)[0]?.split(" ")).toHaveLength(9);
  });
});

describe("the default providers", () => {
  test("carry the keys, including those from files", () => {
    const { readFile = () => "" } = sources({ files: { "/run/key": " sk-1\n" } });
    const env = { OPENAI_API_KEY_FILE: "/run/key", GEMINI_API_KEY: "g" };
    expect(defaultModels({ env, ollamaModels: ["m"], readFile }).providers).toEqual(
      new Map<string, ProviderConfig>([
        ["openai", { kind: "openai", apiKey: "sk-1", timeoutMs: 60_000 }],
        ["google", { kind: "google", apiKey: "g", timeoutMs: 60_000 }],
        ["ollama", { kind: "openai-compatible", baseUrl: "http://127.0.0.1:11434/v1", timeoutMs: 60_000 }],
      ]),
    );
  });

  test("a key's file that cannot be read stops the start", () => {
    expect(() => load({ env: { OPENAI_API_KEY_FILE: "/none" } })).toThrow(
      "OPENAI_API_KEY: the file that OPENAI_API_KEY_FILE names does not exist",
    );
  });

  test("a key is trimmed, and refused if it cannot be sent in a header", () => {
    const key = (OPENAI_API_KEY: string) =>
      load({ env: { OPENAI_API_KEY } }).config.providers.get("openai")?.apiKey;
    expect(key(" sk-1\n")).toBe("sk-1");
    expect(() => key("sk-\u00e9")).toThrow(
      "OPENAI_API_KEY: is [redacted]; expected a key of printable ASCII",
    );
  });

  test("are overridden by the file's", () => {
    const yaml =
      'providers: { openai: { kind: openai, api_key: mine, base_url: "https://proxy.example/v1" } }';
    const { config } = load({ yaml, env: { OPENAI_API_KEY: "found" } });
    expect(config.providers.get("openai")).toMatchObject({
      apiKey: "mine",
      baseUrl: "https://proxy.example/v1",
    });
    expect(config.tiers.get(1)?.models).toEqual(["openai/gpt-5-nano", "builtin/extractive"]);
  });

  test("a vendor is used under its configured name, and not if its name means another provider", () => {
    const yaml =
      "providers: { claude: { kind: anthropic, api_key: k }, openai: { kind: google, api_key: k } }";
    const { config } = load({ yaml, env: { OPENAI_API_KEY: "found" } });
    expect(config.tiers.get(2)?.models).toEqual([
      "claude/claude-sonnet-4-5",
      "openai/gemini-2.5-flash",
      "builtin/extractive",
    ]);
  });

  test("an Ollama's models are not requested from a provider that only shares its name", () => {
    const other: ProviderConfig = { kind: "google", timeoutMs: 1 };
    expect(routes({}, ["llama3.2"], new Map([["ollama", other]]))[0]).not.toContain("llama3.2");
  });

  test("may not serve embeddings if their kind has none", () => {
    const model = (name: string) => ({
      env: { ANTHROPIC_API_KEY: "k", GATEHOUSE_EMBEDDINGS_MODEL: `anthropic/${name}` },
    });
    expect(() => load(model("claude"))).toThrow("embeddings.model");
    expect(() => load(model("claude"))).toThrow("providers of kind anthropic have no embeddings");
    const yaml = 'providers: { anthropic: { kind: openai-compatible, base_url: "http://127.0.0.1:1" } }';
    expect(load({ yaml, ...model("bge") }).config.embeddings.model).toBe("anthropic/bge");
  });

  test("may serve the embeddings", () => {
    const env = { OPENAI_API_KEY: "k", GATEHOUSE_EMBEDDINGS_MODEL: "openai/text-embedding-3-small" };
    expect(load({ env }).config.embeddings.model).toBe("openai/text-embedding-3-small");
    expect(() => load({ env: { ...env, OPENAI_API_KEY: "" } })).toThrow("no provider openai is configured");
  });
});

describe("withDefaultModels", () => {
  test("adds an Ollama to a configuration without tiers, and reports where each setting came from", () => {
    const env = { OPENAI_API_KEY: "k" };
    const before = load({ env });
    const after = withDefaultModels(before, { env, ollamaModels: ["llama3.2"] });
    expect(after.config.tiers.get(1)?.models).toEqual([
      "openai/gpt-5-nano",
      "ollama/llama3.2",
      "builtin/extractive",
    ]);
    expect([...after.config.providers.keys()]).toEqual(["openai", "ollama"]);
    expect(originOf(after, "providers.openai.api_key")).toBe("environment (OPENAI_API_KEY)");
    expect(originOf(after, "providers.ollama.base_url")).toBe("default (an Ollama answers)");
    expect(after.values.filter(({ key }) => key === "tiers.1.models")).toHaveLength(1);
    expect(new Set(after.values.map(({ key }) => key)).size).toBe(after.values.length);
  });

  test("leaves a configuration with tiers exactly as it is", () => {
    const env = { OPENAI_API_KEY: "k" };
    const before = load({ yaml: "tiers: { 3: { models: [builtin/extractive] } }", env });
    expect(before.config.providers.size).toBe(0);
    expect([...before.config.tiers.keys()]).toEqual([3]);
    expect(withDefaultModels(before, { env, ollamaModels: ["llama3.2"] })).toBe(before);
  });
});
