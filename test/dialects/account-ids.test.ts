/** Clients cannot name files, containers and audio in the provider's account, which all workspaces share. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type FakeMessages, startFakeMessages } from "../support/fake-messages.ts";
import { message } from "./messages-support.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let anthropic: FakeMessages;
let stage: DialectStage;
beforeAll(async () => {
  anthropic = startFakeMessages("sk-claude");
  anthropic.script("any", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const providers = `  claude: { kind: anthropic, base_url: "${anthropic.url}", api_key: sk-claude }`;
  stage = await openDialectStage({ providers });
});
afterAll(async () => {
  await stage.stop();
  await anthropic.close();
});

/** @param members the request's JSON without the model */
async function post(path: string, model: string, members: string) {
  const response = await fetch(stage.gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    body: `{"model":"${model}",${members}}`,
  });
  return { status: response.status, text: await response.text() };
}

const seen = () => stage.upstream.requests.length + anthropic.requests.length;
const user = (content: string) => `"messages":[{"role":"user","content":[${content}]}]`;
const chatFile = '{"type":"file","file":{"file_id":"file-1"}}';
const document = (source: string) => `{"type":"document","source":${source}}`;

describe("refused, and nothing is sent:", () => {
  test.each([
    ["a file", user(chatFile)],
    [
      "a file, before another member of the same name",
      user('{"type":"file","file":{"file_id":"f","file_id":null}}'),
    ],
    ["a file, written with escapes", user('{"type":"file","file":{"file\\u005fid":"f"}}')],
    ["a file, in other letter case", user('{"type":"file","file":{"File_Id":"f"}}')],
    ["a file in messages that others hide", `${user(chatFile)},"messages":[]`],
    ["stores", `"messages":[],"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`],
    ["an earlier audio", '"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]'],
  ])("of a chat completion, %s", async (_, members) => {
    const before = seen();
    const { status, text } = await post("/v1/chat/completions", "up/first", members);
    expect([status, JSON.parse(text).error.code]).toEqual([404, "not_found"]);
    expect(seen()).toBe(before);
  });

  test.each([
    ["a file", user(document('{"type":"file","file_id":"file_1"}'))],
    ["a file for a container", user('{"type":"container_upload","file_id":"file_1"}')],
    [
      "a file in a tool's result",
      user(
        `{"type":"tool_result","tool_use_id":"t","content":[${document('{"type":"file","file_id":"f"}')}]}`,
      ),
    ],
    ["a container", `"messages":[],"container":"container_1"`],
    ["a container, as an object", `"messages":[],"container":{"id":"container_1"}`],
    ["a container that another member hides", `"messages":[],"container":"container_1","container":null`],
    ["a skill", `"messages":[],"container":{"skills":[{"type":"custom","skill_id":"skill_1"}]}`],
  ])("of a message and of its count of tokens, %s", async (_, members) => {
    const before = seen();
    for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
      const { status, text } = await post(path, "claude/any", `"max_tokens":9,${members}`);
      expect([status, JSON.parse(text).error.type]).toEqual([404, "not_found_error"]);
    }
    expect(seen()).toBe(before);
  });
});

test("arguments and schemas of the client's own tools may have members of these names", async () => {
  const properties = '{"file_id":{"type":"string","default":"f"},"container":{"type":"string"}}';
  const schema = `{"type":"object","properties":${properties},"examples":[{"file_id":"f","container":"c"}]}`;
  const chat = `"messages":[{"role":"assistant","audio":null,"tool_calls":[{"id":"t","type":"function","function":
    {"name":"open","arguments":"{\\"file_id\\":\\"f\\"}"}}]},{"role":"tool","tool_call_id":"t","content":"{\\"file_id\\":\\"f\\"}"}],
    "modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"},
    "tools":[{"type":"function","function":{"name":"open","parameters":${schema}}}]`;
  expect((await post("/v1/chat/completions", "up/first", chat)).status).toBe(200);
  const call = '{"type":"tool_use","id":"t","name":"open","input":{"file_id":"f","container":"c"}}';
  const cited =
    '{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"x","file_id":null}]}';
  const messages = `"max_tokens":9,"container":null,"messages":[{"role":"assistant","content":[${cited},${call}]}],
    "tools":[{"name":"open","input_schema":${schema},"input_examples":[{"file_id":"f"}]}]`;
  expect((await post("/v1/messages", "claude/any", messages)).status).toBe(200);
});
