/** Command-line agents, unmodified: each lets the model run a command, and shows the model's answer. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { startToolProvider, type ToolProvider, type ToolScript } from "../provider.ts";
import { CLAUDE_CODE, CODEX, type ProgramRun, runProgram } from "./programs.ts";

/** Only a shell turns this into the text that the tests expect. */
const COMMAND = "echo boathouse-$((6 * 7))";
const PROMPT = "Where is the key?";

type Start = (base: string, token: string) => Promise<ProgramRun>;

const claudeCode: Start = (base, token) =>
  runProgram([CLAUDE_CODE.path, "-p", PROMPT, "--model", "sonnet", "--allowedTools", "Bash"], {
    ANTHROPIC_BASE_URL: base,
    ANTHROPIC_API_KEY: token,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  });

const codex: Start = (base, token) => {
  const provider = `{name="Gatehouse",base_url="${base}/v1",env_key="GATEHOUSE_TOKEN",wire_api="responses"}`;
  const settings = ["-c", "model_provider=gatehouse", "-c", `model_providers.gatehouse=${provider}`];
  const flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5"];
  return runProgram([CODEX.path, "exec", ...flags, ...settings, PROMPT], { GATEHOUSE_TOKEN: token });
};

const CLAUDE_SCRIPT: ToolScript = { tool: "Bash", input: { command: COMMAND, description: "Looks" } };
const CODEX_SCRIPT: ToolScript = { tool: "exec_command", input: { cmd: COMMAND } };

describe.each([
  ["Claude Code", "/v1/messages", CLAUDE_SCRIPT, claudeCode],
  ["Codex", "/v1/responses", CODEX_SCRIPT, codex],
])("%s", (_, path, script, start) => {
  let provider: ToolProvider;
  let gateway: TestGateway;
  let token: string;

  beforeAll(async () => {
    provider = startToolProvider(script);
    gateway = await startGateway({
      yaml: `
providers:
  openai: { kind: openai, base_url: ${provider.url}, api_key: sk-upstream }
  anthropic: { kind: anthropic, base_url: ${provider.url}, api_key: sk-upstream }
aliases:
  "gpt-*": openai/gpt-*
  "claude-*": anthropic/claude-*
`,
    });
    await gateway.agent("writer");
    token = await gateway.token({ agent: "writer" });
  });
  afterAll(async () => {
    await gateway.stop();
    await provider.close();
  });

  test("runs a command for the model and shows its answer", async () => {
    const { exitCode, stdout, stderr } = await start(gateway.url, token);
    expect([exitCode, exitCode === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(stdout).toContain("The tool returned: ");
    expect(stdout).toContain("boathouse-42");
    expect(new Set(provider.paths)).toEqual(new Set([path]));
    const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=200");
    const outcomes = body.data.filter(({ phase }: { phase: string }) => phase === "outcome");
    expect(outcomes.length).toBeGreaterThanOrEqual(2);
    for (const entry of outcomes) expect(entry).toMatchObject({ outcome: "succeeded", agent: "writer" });
  }, 120_000);
});
